"""The verbs: what `import hushcube as hc` and the command line do, in the same words."""
