"""Profile `full`: parallel calls, both protocol eras, questions, subscriptions. Sans-IO; not loaded otherwise."""
