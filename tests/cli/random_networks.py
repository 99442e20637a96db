"""Networks with racks, to be found by workers that do not know them."""

import random


class Network:
    """Hosts in racks, in no particular order; no racks: all on one switch."""

    def __init__(self, nic, rack_of, uplinks):
        self.nic, self.rack_of, self.uplinks = nic, rack_of, uplinks  # in Mbit/s

    def file(self):
        switches = [f"  - {{name: s{rack}, parent: top, uplink: {rate}Mbps}}\n" for rack, rate in enumerate(self.uplinks)]
        switch_of = (f"s{rack}" if self.uplinks else "top" for rack in self.rack_of)
        hosts = [f"  - {{name: h{rank}, switch: {switch}, nic: {self.nic}Mbps}}\n" for rank, switch in enumerate(switch_of)]
        return "".join(["switches:\n", "  - {name: top}\n", *switches, "hosts:\n", *hosts])

    def seen_uplink(self, rack):
        """No more can cross it than the others' uplinks let through."""
        return min(self.uplinks[rack], sum(self.uplinks) - self.uplinks[rack])

    def racks(self):
        return {frozenset(rank for rank, own in enumerate(self.rack_of) if own == rack) for rack in self.rack_of}

    def is_as(self, nodes):
        """Whether these nodes, as a log has them, are in the same racks."""
        return {frozenset(rack) for rack in racks_of(nodes).values()} == self.racks()


def racks_of(nodes):
    """The ranks below each switch that has hosts."""
    racks = {}
    for node in nodes:
        if node["kind"] == "host":
            racks.setdefault(node["parent"], set()).update(node["ranks"])
    return racks


def random_network(seed, hosts=range(8, 13), nics=(40, 60, 80, 100)):
    """Two to four racks of two hosts or more, 2:1 to 8:1."""
    numbers = random.Random(seed)
    racks = numbers.randint(2, 4)
    hosts = numbers.choice(hosts)
    rack_of = [*range(racks)] * 2 + [numbers.randrange(racks) for _ in range(hosts - 2 * racks)]
    numbers.shuffle(rack_of)
    nic = numbers.choice(nics)
    oversubscription = numbers.uniform(2, 8)
    return Network(nic, rack_of, [round(nic * rack_of.count(rack) / oversubscription, 1) for rack in range(racks)])
