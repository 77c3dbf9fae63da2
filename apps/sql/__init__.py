"""Relational queries as BSP programs: the SQL application of Jarvis et al. 2002, section 4.

The rows of a relation are distributed over the processes. Each module has one primitive, a
function of relations that all processes call together:

================== ====================================== ============ =========================
module             SQL                                    supersteps   h of a process, about
================== ====================================== ============ =========================
scan               FROM, of a file or an Arrow table      0 or 1       the distinct strings
filter, project    WHERE, SELECT                          0            0
aggregate          SUM, COUNT, MIN, MAX, AVG              1            p numbers
group_by           GROUP BY                               2            its groups
distinct           SELECT DISTINCT                        2            its distinct rows
equi_join          JOIN USING                             2            its rows, or p times
                                                                       those of the smaller side
sorted_join        likewise, balanced for frequent values 9            its rows
left_join          LEFT JOIN USING                        2            as equi_join
less_than_join     JOIN ON lesser < greater               3 or 5       p times those of the
                                                                       smaller side
lowest             IN 'low 1%'                            3 or more    p k values, at rank k
order_by           ORDER BY                               7            its rows
rebalance                                                 2            its excess rows
================== ====================================== ============ =========================

The primitives that sort (``order_by``, ``sorted_join``, and optionally ``group_by`` and
``distinct``) use :mod:`bsplib.apps.sorting.sample_sort`; its oversampling factor and the method of
sorting its sample can be chosen.

On virtual processors the primitives that take the group charge for the rows they handle
(:mod:`bsplib.apps.work`), so that the time of a plan is the same in every run. ``filter_rows`` and
``project`` have no group; who calls them charges.

Columns are integers, floats, dates or strings, with NULLs as in SQL: a comparison with NULL
is unknown, aggregates ignore it, it joins nothing, groups and duplicates treat it as a value,
and it is ordered last unless it is requested first. :mod:`bsplib.apps.sql.expression` calculates
with columns, and compares them.

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
