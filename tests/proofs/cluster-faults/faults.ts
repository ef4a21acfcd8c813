import { setTimeout } from 'node:timers/promises'
import { serverFaults } from '../pg-faults/faults.ts'
import type { Machine } from './network.ts'
import type { Service } from './service.ts'

interface Victim {
  service: Service
  random: () => number
}

/** Injects a fault. Resolves with what was struck when it is over. */
export type Fault = (victim: Victim) => Promise<string>

/** Each run has some of every kind. */
export const faults: Record<string, Fault> = {
  'a server is killed': async ({ service, random }) => {
    const index = Math.floor(random() * service.servers.length)
    const { name } = service.servers[index] ?? {}
    await service.servers[index]?.kill()
    await setTimeout(between(random, 0, 6000))
    await service.startServer(index)
    return String(name)
  },
  'a server is paused': async ({ service, random }) => {
    const server = chosen(service.servers, random)
    await server.pause()
    await setTimeout(between(random, 2000, 8000))
    server.wakeUp()
    return server.name
  },
  'the primary is killed or paused': async (victim) => strike('primary', victim),
  'a standby is killed or paused': async (victim) => strike('standby', victim),
  'NATS is killed or paused': async ({ service: { nats }, random }) => {
    if (random() < 0.5) {
      await nats.kill()
      await setTimeout(between(random, 0, 4000))
      nats.start()
      return 'killed'
    }
    nats.signal('SIGSTOP')
    await setTimeout(between(random, 1000, 6000))
    nats.signal('SIGCONT')
    return 'paused'
  },
  'two machines are cut off from each other': async ({ service, random }) => {
    const [one, other] = await pairOf(service, random)
    service.network.cut(one, other)
    try {
      await setTimeout(between(random, 2000, 8000))
    } finally {
      service.network.mend(one, other)
    }
    return `${one.name} and ${other.name}`
  },
}

async function strike(kind: keyof typeof serverFaults, { service: { cluster }, random }: Victim): Promise<string> {
  const [name, inject] = chosen(Object.entries(serverFaults[kind]), random)
  await inject({ cluster, random })
  await cluster.isWhole()
  return name
}

/** Two that talk to each other: mostly a server and what it cannot do without. */
async function pairOf({ machines, cluster }: Service, random: () => number): Promise<[Machine, Machine]> {
  const { servers, databases, etcd, bus } = machines
  if (random() < 0.4) {
    const pairs = (some: readonly Machine[], others: readonly Machine[]): [Machine, Machine][] =>
      some.flatMap((one) => others.filter((other) => other !== one).map((other): [Machine, Machine] => [one, other]))
    return chosen([...pairs(servers, [...databases, bus]), ...pairs(databases, [...databases, etcd])], random)
  }
  const { address } = await cluster.primary()
  const primary = databases.find((each) => each.address === address) ?? bus
  return [chosen(servers, random), random() < 0.6 ? primary : bus]
}

function chosen<Item>(items: readonly Item[], random: () => number): Item {
  return items[Math.floor(random() * items.length)] as Item
}

function between(random: () => number, low: number, high: number): number {
  return low + random() * (high - low)
}
