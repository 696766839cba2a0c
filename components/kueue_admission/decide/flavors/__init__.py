"""Which flavor each pod set gets, and why not another one."""
