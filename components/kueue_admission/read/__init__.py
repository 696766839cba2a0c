"""What clusters print, read once: from Kubernetes objects as plain data to what decisions and answers take.

An object stays what JSON and YAML made of it, a `forms.manifest.Manifest`. It is read through one of two lenses:

- `fields.Fields` is one object within it, its path, and the list of what is wrong. People write jobs and Kueue's
  objects, so readers of these keep the list and refuse them with it (`kueue_objects`, `workloads`, `pods`).
- `printed.Printed` and its kinds are typed views on Fields: where a Workload stands, whether a Job is over, which Node
  a Pod is on. Clusters write what these say, so most readers ignore the list (`Printed.of`), and what has a wrong type
  is missing. `workloads.parse_status` reads a Workload through the same view, with the list.

Views take each value when it is asked for. Of 10,000 Workloads with conditions, owners and an admission, on one core:

| | CPU of each | kept of each |
|---|---|---|
| a view, made and asked for three conditions | 3 us | nothing |
| the same through functions of plain dicts | 2 us | nothing |
| a dataclass filled by hand | 9 us | 0.8 kB |
| msgspec.convert into structs | 13 us | 1.8 kB |
| pydantic models | 58 us | 7.7 kB |

Typed decoding of the JSON itself (msgspec: 27 us, json.loads: 39 us) would pay, but objects come as YAML and out of
lists of mixed kinds too, are passed on whole, and msgspec stops at the first wrong type, where every problem is wanted.
"""
