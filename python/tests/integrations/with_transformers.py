"""Hugging Face's Trainer: accumulated gradients, clipping, evaluation, checkpoints, and going on from one."""

import sys

import torch
import torch.distributed as dist
from transformers import GPT2Config, GPT2LMHeadModel, TrainingArguments

from dssync.integrations.transformers import DivideShuffleTrainer
from task import TOPOLOGY, check_equal


class Cycles(torch.utils.data.Dataset):
    """Sequences that go around in a circle."""

    def __len__(self):
        return 64

    def __getitem__(self, index):
        tokens = (torch.arange(12) + index) % 16
        return {"input_ids": tokens, "labels": tokens}


class Checked(DivideShuffleTrainer):
    def evaluate(self, *others, **named):
        result = super().evaluate(*others, **named)
        check_equal(self.model)  # all ranks have evaluated the same model
        return result


def trainer(steps):
    torch.manual_seed(5)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=12, n_embd=32, n_layer=1, n_head=2,
                                       bos_token_id=0, eos_token_id=0))
    arguments = TrainingArguments(sys.argv[1], max_steps=steps, per_device_train_batch_size=4, gradient_accumulation_steps=2,
                                  learning_rate=5e-3, lr_scheduler_type="constant", eval_strategy="steps", eval_steps=10,
                                  save_strategy="steps", save_steps=20, report_to=[], use_cpu=True, disable_tqdm=True,
                                  logging_strategy="no")
    return Checked(model=model, args=arguments, train_dataset=Cycles(), eval_dataset=Cycles(), topology=TOPOLOGY)


first = trainer(20)
before = first.evaluate()["eval_loss"]
first.train()
check_equal(first.model)
assert first.sync.metrics["iteration"] == 20, first.sync.metrics
reached = first.evaluate()["eval_loss"]
assert reached < 0.6 * before, (before, reached)
dist.barrier()
again = trainer(25)
again.train(resume_from_checkpoint=f"{sys.argv[1]}/checkpoint-20")
check_equal(again.model)
assert again.sync.metrics["iteration"] == 5
assert again.evaluate()["eval_loss"] < reached
dist.barrier()
