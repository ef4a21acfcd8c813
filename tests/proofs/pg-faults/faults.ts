import { setTimeout } from 'node:timers/promises'
import { until, type Cluster, type ClusterNode } from './cluster.ts'
import type { Pooler } from './pooler.ts'
import { childrenOf } from './processes.ts'
import type { Router } from './router.ts'

/** What faults are injected into. */
export interface Victim {
  cluster: Cluster
  router: Router
  pooler: Pooler
  random: () => number
}

/** Injects a fault. Resolves when it is over: when the process runs again, or whatever it restarts has been left to itself. */
export type Fault = (victim: Victim) => Promise<void>

type ServerFault = (victim: Pick<Victim, 'cluster' | 'random'>) => Promise<void>

/** Faults of single servers of the database. */
export const serverFaults: Record<'primary' | 'standby', Record<string, ServerFault>> = {
  primary: {
    'the server is killed': async ({ cluster }) => (await cluster.primary()).signalServer('SIGKILL'),
    'its first process is killed': async ({ cluster }) => killFirst(await cluster.primary()),
    'a connection of it is killed, so that all of it restarts': async ({ cluster, random }) => {
      const children = childrenOf((await cluster.primary()).postmaster ?? 0)
      const victim = children[Math.floor(random() * children.length)]
      if (victim !== undefined) process.kill(victim, 'SIGKILL')
    },
    'the server is paused': async ({ cluster, random }) => pause(await cluster.primary(), between(random, 300, 4000)),
  },
  standby: {
    'the synchronous one is killed': async ({ cluster }) =>
      (await cluster.standbys()).synchronous.signalServer('SIGKILL'),
    'the other one is killed': async ({ cluster }) => (await cluster.standbys()).other.signalServer('SIGKILL'),
    'the synchronous one is paused': async ({ cluster, random }) =>
      pause((await cluster.standbys()).synchronous, between(random, 500, 8000)),
    'the synchronous one is killed with its Patroni': async ({ cluster, random }) => {
      const { synchronous } = await cluster.standbys()
      await killNode(synchronous)
      await setTimeout(between(random, 0, 8000))
      synchronous.patroni.start()
    },
    'both are killed with their Patroni': async ({ cluster, random }) => {
      const nodes = Object.values(await cluster.standbys())
      await Promise.all(nodes.map(killNode))
      await setTimeout(between(random, 0, 5000))
      for (const { patroni } of nodes) patroni.start()
    },
  },
}

/** By what they strike. Each run has some of every kind. */
export const faults: Record<string, Record<string, Fault>> = {
  ...serverFaults,
  connections: {
    'the server ends all of them, again and again': async ({ cluster, random }) => {
      for (let count = 0; count < 10; count++) {
        await terminateAll(await cluster.primary())
        await setTimeout(between(random, 0, 200))
      }
    },
    'half of them are cut, again and again': async ({ router, random }) => {
      for (let count = 0; count < 20; count++) {
        router.cut(() => random() < 0.5)
        await setTimeout(between(random, 0, 100))
      }
    },
    'half of them stall for good': async ({ router, random }) => void router.stall(() => random() < 0.5),
    'all of them stall for good': async ({ router }) => void router.stall(() => true),
  },
  pooler: {
    'it is killed': async ({ pooler, random }) => {
      await pooler.daemon.kill()
      await setTimeout(between(random, 0, 3000))
      pooler.daemon.start()
    },
    'it is paused': async ({ pooler, random }) => {
      pooler.daemon.signal('SIGSTOP')
      await setTimeout(between(random, 300, 5000))
      pooler.daemon.signal('SIGCONT')
    },
  },
  failover: {
    'the primary is killed with its Patroni': async ({ cluster }) => {
      const old = await cluster.primary()
      await killNode(old)
      await otherLeads(cluster, old)
      old.patroni.start()
    },
    'the primary is paused with its Patroni until another one leads': async (victim) => pauseUntilDeposed(victim),
    'the same, and its connections stay open': async (victim) => {
      victim.router.keepsOldLinks = true
      await pauseUntilDeposed(victim)
      // Some connections still lead to the former primary when it wakes up.
      await setTimeout(between(victim.random, 0, 2000))
      victim.router.keepsOldLinks = false
    },
    // Patroni 3.0.2 that starts beside a running primary clears synchronous_standby_names and keeps it so: commits wait for no standby,
    // and the next failover loses them. So the server ends before Patroni comes back, as in a container with both of them.
    'Patroni of the primary is killed, and some time later the server': async ({ cluster, random }) => {
      const node = await cluster.primary()
      await node.patroni.kill()
      await setTimeout(between(random, 2000, 10_000))
      node.signalServer('SIGKILL')
      node.patroni.start()
    },
    'etcd is killed': async ({ cluster, random }) => {
      await cluster.etcd.kill()
      await setTimeout(between(random, 0, 6000))
      cluster.etcd.start()
    },
  },
  disk: {
    'the data disk of the primary is full': async ({ cluster, random }) => {
      const { data } = (await cluster.primary()).disks
      await data.fill(between(random, 0, 200_000))
      await setTimeout(between(random, 1000, 6000))
      await data.empty()
    },
    'the WAL disk of the primary is full': async ({ cluster, random }) =>
      fillWal(await cluster.primary(), { cluster, random }),
    'the WAL disk of the synchronous standby is full': async ({ cluster, random }) =>
      fillWal((await cluster.standbys()).synchronous, { cluster, random }),
  },
}

function between(random: () => number, low: number, high: number): number {
  return low + random() * (high - low)
}

async function pause(node: ClusterNode, ms: number): Promise<void> {
  const { postmaster } = node
  node.signalServer('SIGSTOP')
  await setTimeout(ms)
  // Patroni may have given it up and started another one.
  if (node.postmaster === postmaster) node.signalServer('SIGCONT')
}

function killFirst({ postmaster }: ClusterNode): void {
  if (postmaster !== undefined) process.kill(postmaster, 'SIGKILL')
}

async function killNode(node: ClusterNode): Promise<void> {
  await node.patroni.kill()
  node.signalServer('SIGKILL')
}

async function pauseUntilDeposed({ cluster, random }: Victim): Promise<void> {
  const old = await cluster.primary()
  old.patroni.signal('SIGSTOP')
  old.signalServer('SIGSTOP')
  try {
    await otherLeads(cluster, old)
    await setTimeout(between(random, 0, 3000))
  } finally {
    // The server first: for a moment nothing but the synchronous standby keeps it from acknowledging.
    old.signalServer('SIGCONT')
    await setTimeout(between(random, 0, 1000))
    old.patroni.signal('SIGCONT')
  }
}

async function otherLeads(cluster: Cluster, old: ClusterNode): Promise<void> {
  await until('another node leads', async () => {
    for (const node of cluster.nodes) if (node !== old && (await node.isPrimary())) return node
    return undefined
  })
}

async function terminateAll(primary: ClusterNode): Promise<void> {
  await primary
    .ask(`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'`)
    .catch(() => undefined) // the primary may have changed meanwhile
}

/**
 * Files for the WAL are made ahead, so more of them are asked for until there are none left. Not more than that: the primary
 * keeps all WAL that a standby lacks, and its own disk would be full for good.
 */
async function fillWal(node: ClusterNode, { cluster, random }: Pick<Victim, 'cluster' | 'random'>): Promise<void> {
  const primary = await cluster.primary()
  await node.disks.wal.fill(between(random, 0, 200_000))
  const endMs = Date.now() + between(random, 2000, 7000)
  for (let files = 0; Date.now() < endMs; files++) {
    if (files < filesAhead) await primary.ask('select pg_switch_wal()').catch(() => undefined) // it may be down by now
    await setTimeout(100)
  }
  await node.disks.wal.empty()
}

/** More than the primary makes ahead, of 16 MB each: see `max_wal_size`. */
const filesAhead = 12
