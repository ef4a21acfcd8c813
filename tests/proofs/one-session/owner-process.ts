// A process with owners of a session in it, made to be killed.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openFileStore } from '@tapetree/session/stores/file'
import type { SessionStore } from '@tapetree/session'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { codeOf, openOwner, type SessionOwner } from './owners.ts'
import type { Order, Reply, Sight } from './words.ts'
import { World } from './world.ts'

const seats = new Map<number, SessionOwner>()
let store: SessionStore | undefined
let world: World | undefined

process.on('message', (order: Order) => {
  void carryOut(order).then(
    (result) => reply({ id: order.id, ok: true, result }),
    (error: unknown) => reply({ id: order.id, ok: false, code: codeOf(error), message: String(error) }),
  )
})
// Nobody is left to work for.
process.once('disconnect', () => process.exit(0))

async function carryOut(order: Order): Promise<unknown> {
  switch (order.type) {
    case 'begin':
      return begin(order)
    case 'open':
      seats.set(order.seat, await openOwner(order.kind, worldNow()))
      return undefined
    case 'call': {
      const owner = ownerAt(order.seat)
      if (order.method === 'close' || order.method === 'suspend') seats.delete(order.seat)
      return (owner[order.method] as (...args: unknown[]) => Promise<unknown>).apply(owner, order.args)
    }
    case 'look':
      return sightOf(ownerAt(order.seat))
    case 'end':
      await Promise.allSettled([...seats.values()].map((owner) => owner.close()))
      seats.clear()
      return store?.close()
    default:
      order satisfies never
      return undefined
  }
}

function begin({ folder, sessionId, seed, prefix }: Order & { type: 'begin' }): void {
  const random = randomFrom(seed)
  store = openFileStore({ folder: join(folder, 'sessions'), durability: 'accepted' })
  world = new World({
    store,
    sessionId,
    random,
    prefix,
    folder,
    ledger: join(folder, 'ledger'),
    isAsking: random() < 0.3,
    pace: { pass: (signal) => sleep(random() * 12, undefined, signal && { signal }) },
  })
}

function worldNow(): World {
  if (!world) throw new Error('No history has begun.')
  return world
}

function ownerAt(seat: number): SessionOwner {
  const owner = seats.get(seat)
  if (!owner) throw Object.assign(new Error(`Nobody sits at ${seat}.`), { code: 'session-closed' })
  return owner
}

function sightOf({ isBusy, session }: SessionOwner): Sight {
  const [question] = session.pendingPermissions
  return { isBusy, waiting: session.inbox.messages.length, question: question?.requestId }
}

function reply(answer: Reply): void {
  process.send?.(answer)
}
