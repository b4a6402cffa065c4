"""What is asked, and how good an answer is: problems, plans, rules, the judge and the simulation."""
