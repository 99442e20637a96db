"""The simulator of replicas: rounds, estimates and a few steps of training, against values by hand."""

import io
import json
import pathlib
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import replicas  # noqa: E402


class ReplicasTest(unittest.TestCase):
    def test_disagreement_is_that_of_the_tables_in_mixing(self):
        for rounds, expected in (("a", 0), ("irppa", 0.5), ("iiia", 1.3125), ("iiiiiiia", 3.0625), ("ra", 0.0625)):
            mixer = replicas.Mixer(replicas.Scheme.parse(f"rounds={rounds}"))
            self.assertAlmostEqual(mixer.disagreement, expected, places=4, msg=rounds)
        combined = replicas.Mixer(replicas.Scheme.parse("rounds=a,combine=1"))
        self.assertAlmostEqual(combined.disagreement, 7 / 8, places=4)

    def test_an_average_after_one_step_tells_all_of_the_momentum(self):
        self.assertAlmostEqual(replicas.share_of_last(1, 0.9), 1)
        # Noise e1, e2: the last difference is 0.09 e1 + 0.1 e2, the sum of both 0.19 e1 + 0.1 e2.
        self.assertAlmostEqual(replicas.share_of_last(2, 0.9), (0.09 * 0.19 + 0.1**2) / (0.19**2 + 0.1**2))

    def test_pools_add_up_what_lies_together(self):
        values = torch.arange(replicas.PARAMETERS, dtype=torch.float64).unsqueeze(0)
        self.assertEqual(replicas.pooled_sum(values, "block4")[0, :5].tolist(), [6, 6, 6, 6, 22])
        self.assertEqual(replicas.pooled_sum(values, "row")[0, 0].item(), 63 * 64 / 2)
        first = 128 * 64  # elements of the first tensor
        self.assertEqual(replicas.pooled_sum(values, "tensor")[0, 0].item(), first * (first - 1) / 2)

    def test_pure_noise_is_recognized(self):
        scheme = replicas.Scheme.parse("correction=block64,clip=0")
        rows = torch.zeros(8, replicas.PARAMETERS)
        adam = replicas.Adam(scheme, rows)
        generator = torch.Generator().manual_seed(5)
        for _ in range(30):
            adam.step(rows, torch.randn(rows.shape, generator=generator), 1e-3)
        self.assertLess((adam.noise_ratio - 1 / 8).abs().max().item(), 0.01)
        self.assertAlmostEqual(adam.noise.mean().item() / replicas.PARAMETERS, 1, delta=0.02)

    def test_a_constant_gradient_has_no_noise(self):
        rows = torch.zeros(8, replicas.PARAMETERS)
        adam = replicas.Adam(replicas.Scheme.parse("correction=block64,clip=0,decay=0"), rows)
        for _ in range(12):
            adam.step(rows, torch.ones_like(rows), 1e-3)
        self.assertAlmostEqual(adam.noise_ratio.mean().item(), 1, places=4)

    def test_exact_averages_with_the_true_moment_are_bsp(self):
        data = replicas.text()
        ends = [replicas.train(replicas.Scheme.parse(scheme), 4, 4, 10, data)["losses"][4]
                for scheme in ("method=bsp", "rounds=a,correction=truth,norm=truth", "rounds=a,norm=own")]
        self.assertAlmostEqual(ends[0], ends[1], places=4)
        self.assertNotAlmostEqual(ends[0], ends[2], places=4)

    def test_finished_runs_are_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            keep = pathlib.Path(folder) / "runs.jsonl"
            words = ["--steps", "2", "--evaluate-every", "1", "--seeds", "10", "--keep", str(keep), "method=bsp,workers=2"]
            tables, progress = [], io.StringIO()
            for _ in range(2):
                out = io.StringIO()
                with redirect_stdout(out), redirect_stderr(progress):
                    replicas.main(words)
                tables.append(out.getvalue())
            self.assertEqual(tables[0], tables[1])
            self.assertEqual(progress.getvalue().count("running"), 1)
            self.assertEqual(list(json.loads(keep.read_text())["losses"]), ["1", "2"])

    def test_an_unknown_key_is_answered(self):
        with self.assertRaisesRegex(SystemExit, "expected key=value with one of method.*found 'colour=red'"):
            replicas.main(["colour=red"])


if __name__ == "__main__":
    unittest.main()
