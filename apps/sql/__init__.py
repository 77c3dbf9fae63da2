"""Relational queries as BSP programs: the SQL application of Jarvis et al. 2002, section 4.

The rows of a relation are distributed over the processes. Each module has one primitive, a
function of relations that all processes call together:

================== =================================== ============ =========================
module             SQL                                 supersteps   h of a process, about
================== =================================== ============ =========================
files              FROM, of a file or an Arrow table   0 or 1       the distinct strings
group_by           SUM ... GROUP BY                    2            its groups
equi_join          JOIN USING                          2            its rows
                   likewise by a sort, balanced for    9            its rows
                   frequent values
less_than_join     JOIN ON lesser < greater            2 or 4       p times its rows of the
                                                                    smaller side
lowest             IN 'low 1%'                         3 or more    p k values, at rank k
exchange           to balance the rows                 2            its excess rows
================== =================================== ============ =========================

They are what the six queries of the paper need, over one column each. What sorts uses
:mod:`bsplib.apps.sorting.sample_sort`; its oversampling factor and the method of
sorting its sample can be chosen.

On virtual processors the primitives charge for the rows they handle (:mod:`bsplib.apps.work`),
so that the time of a plan is the same in every run.

Columns are integers, floats, dates or strings, with NULLs as in SQL: sums ignore it, it joins
nothing, is less than nothing, and groups treat it as a value.

The paper does not print its schema. This schema is our own; ``python -m bsplib.apps.sql schema``
shows it::

    ITEM(item, name, class, price, since)   the items: key, class and price
    QNT(class, stock, floor)                for each class the stock, and a price
    TRAN(tran, item, day, units)            the sales, in the order of days

The number of classes is the square root of the number of items. Items are sold by Zipf's
law. The floor of a class is a price that up to 2 m/c of m items exceed, with c classes,
so that the less-than-join of TEMP4 and ITEM has m rows on average and 2 m at most.
:mod:`bsplib.apps.sql.queries` has the six queries.

``python -m bsplib.apps.sql run`` evaluates the queries. ``python -m bsplib.apps.sql story`` repeats
the stages of the paper: unbalanced input; balanced input, with sorts whose oversampling factor is
too small; the factor required by theory; and a sample that all processes sort together. By default
its rows lie unevenly, and are sorted whole by keys of which few are equal. ``python -m
bsplib.apps.sql table1`` prices the first stage and the last one on three Machines, for 1 to 16
processes.
"""

from __future__ import annotations

from bsplib.apps.sql.cli import run as command
from bsplib.apps.sql.program import main
from bsplib.apps.sql.reference import reference

__all__ = ["command", "main", "reference"]
"""Its command line, what each process runs, and what comes out of it by numpy alone."""
