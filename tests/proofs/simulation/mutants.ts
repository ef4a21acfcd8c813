import { Session } from '@tapetree/session'
import { AppendQueue, type SessionBatch } from '../../../packages/session/src/stores/postgres/append-queue.ts'
import { LeaseEnd } from '../../../packages/session/src/stores/postgres/lease.ts'
import { PostgresLog } from '../../../packages/session/src/stores/postgres/postgres-log.ts'
import { PostgresLogStore } from '../../../packages/session/src/stores/postgres/postgres-store.ts'
import { positionOf } from '../../../packages/session/src/stores/postgres/positions.ts'
import { replaceMember, type Mutant } from '../mutants/catch-mutant.ts'
import type { DatabaseRules } from './modelled-database.ts'

interface SimulationMutant {
  /** Rules of the database that it switches off. */
  rules?: Partial<DatabaseRules>
  /** A fault in our own code. */
  add?: Mutant
}

/** Faults that this proof must find. */
export const mutants: Record<string, SimulationMutant> = {
  'a database that does not compare terms': { rules: { comparesTerms: false } },

  'a database that compares neither terms nor heads': { rules: { comparesTerms: false, comparesHeads: false } },

  'a database whose leases never end': { rules: { leasesEnd: false } },

  'a database whose takeovers keep the term': { rules: { raisesTerms: false } },

  'a database that lets anybody claim what a living node owns': { rules: { heedsLeases: false } },

  'a database that renews and releases the claims of others': { rules: { comparesClaims: false } },

  // Either of the two does no harm alone: a batch that is sent again is refused by its head, and a new term replaces heads.
  'an unknown outcome that is taken for a failure, and heads that are not compared': {
    rules: { comparesHeads: false },
    add: () =>
      onAppend((append) => async (batch) => {
        const result = await append(batch)
        if (result.type !== 'unknown') return result
        return { type: 'failed', cause: result.cause, final: false, isPassing: true }
      }),
  },

  'an unknown outcome that is taken for done': {
    add: () =>
      onAppend((append) => async (batch) => {
        const result = await append(batch)
        if (result.type !== 'unknown') return result
        const { head, lines } = batch
        const positions = lines.map(({ text }, index) => positionOf(head + 1 + index, Buffer.byteLength(text)))
        return { type: 'appended', positions }
      }),
  },

  'a paused node that does not notice that its lease has ended': {
    add: () => {
      const original = Object.getOwnPropertyDescriptor(LeaseEnd.prototype, 'isPast') as PropertyDescriptor
      Object.defineProperty(LeaseEnd.prototype, 'isPast', { ...original, get: () => false })
      return () => Object.defineProperty(LeaseEnd.prototype, 'isPast', original)
    },
  },

  'a node that does not hear that its session was taken over': {
    add: () => replaceMember(PostgresLog.prototype, 'lose', () => () => undefined),
  },

  'a cluster in which nobody takes over': {
    add: () => replaceMember(PostgresLogStore.prototype, 'claimAbandoned', () => async () => []),
  },

  'a command that takes effect each time it is sent': {
    add: () => replaceMember(Session.prototype, 'effectOf', () => () => undefined),
  },
}

type Append = AppendQueue['append']

function onAppend(change: (append: Append) => Append): () => void {
  return replaceMember(AppendQueue.prototype, 'append', (original) => {
    return function (this: AppendQueue, batch: SessionBatch) {
      return change((each) => original.call(this, each))(batch)
    }
  })
}
