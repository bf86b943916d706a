"""``ray_job.py URL FOLDER [CACHE]``: the rows of FOLDER/in.jsonl through the agent, with notes of what is done."""

import sys
from pathlib import Path

import ray
from engines import agent_at

from reactflow.batch.rows import Asking
from reactflow.engines.ray import answer, resume_in
from reactflow.engines.worker import Work

url, folder, cache, concurrency = sys.argv[1], Path(sys.argv[2]), sys.argv[3] or None, int(sys.argv[4])
ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
resume_in(str(folder / "notes"))
work = Work(agent=agent_at(url, sys.argv[5]), cache=cache, concurrency=concurrency)
rows = ray.data.read_json(str(folder / "in.jsonl")).repartition(target_num_rows_per_block=concurrency)
answer(rows, work, asking=Asking("text")).write_json(str(folder / "out"))
