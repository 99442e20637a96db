"""A byte-level transformer with AdamW and clipping, with dssync. Beside it: transformer_ddp.py, which differs in three lines.

    torchrun --nproc-per-node 4 python/examples/transformer.py
"""

import torch
import torch.distributed as dist
import dssync

from text_task import Report, Text, Transformer, loss_of, options_of, schedule

options = options_of(__doc__)
dist.init_process_group("gloo")
torch.manual_seed(options.seed)
text, model, report = Text(options.seed), Transformer(), Report(options)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.05)
scheduler = schedule(optimizer, options.steps)
sync = dssync.DivideShuffle(model, optimizer, topology=options.topology, disagreement=options.disagreement, attach=True)
for step in range(1, options.steps + 1):
    optimizer.zero_grad()
    loss_of(model, *text.batch()).backward()
    sync.clip_grad_norm_(1.0)
    optimizer.step()
    scheduler.step()
    report.add(step, text, model)
report.show()
dist.barrier()
