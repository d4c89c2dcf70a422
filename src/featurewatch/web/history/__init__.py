"""History: the states of clusters at their revisions, and the operations of their controllers."""
