"""The machine we run on: its cores, quotas of their time, and what tells it from another one."""
