"""A writer in a process of its own: `python -m tests.bench.start DSN HOSTS`.

Says when its first command was answered; then meets so many hosts and prints its resident bytes.
"""

import sys

import psutil

from app.collector import collect_rarely
from tests.bench.load import Bench

if __name__ == "__main__":
    collect_rarely()
    bench = Bench(sys.argv[1])
    print("answered", flush=True)
    bench.place_hosts(range(int(sys.argv[2])))
    print(psutil.Process().memory_info().rss)
    bench.close()
