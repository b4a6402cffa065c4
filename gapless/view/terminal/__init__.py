"""Reports: tables and Gantt charts of plans and traces."""
