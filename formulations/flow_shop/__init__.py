"""Several requests on one platform: tables, judge, rules and encodings of a workload."""
