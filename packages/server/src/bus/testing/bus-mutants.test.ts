// A contract is worth as much as the broken adapters that it rejects. Each row below is the local bus with one fault.
import { withDeadline } from '@tapetree/session/util/deadline'
import { Listeners } from '@tapetree/session/util/listeners'
import { describe, expect, test } from 'vitest'
import { LocalNetwork } from '../local-bus.ts'
import { BusError, type MessageListener, type RequestHandler, type SessionBus } from '../session-bus.ts'
import { testSessionBus, type BusesUnderTest } from './bus-contract.ts'

/** What the bus does wrong, and how. The change gets the buses of all nodes. */
type Mutant = [fault: string, change: (bus: SessionBus, all: readonly SessionBus[]) => Partial<SessionBus>]

const publishing: Mutant[] = [
  [
    'delivers to the publisher',
    (bus) => {
      const own = new Map<string, Set<MessageListener>>()
      return {
        publish: (topic, message) => {
          bus.publish(topic, message)
          for (const listener of own.get(topic) ?? []) queueMicrotask(() => listener(message, bus.node))
        },
        subscribe: async (topic, listener) => {
          own.set(topic, (own.get(topic) ?? new Set()).add(listener))
          return bus.subscribe(topic, listener)
        },
      }
    },
  ],
  ['delivers to one node', (bus, all) => onMessage(bus, () => all.find(({ node }) => node !== 'a') === bus)],
  ['delivers nothing', () => ({ publish: () => undefined })],
  ['publishes twice', (bus) => onPublish(bus, (publish) => [publish, publish])],
  [
    'swaps two messages',
    (bus) => {
      let kept: (() => void) | undefined
      return onPublish(bus, (publish) => {
        const both = kept ? [publish, kept] : []
        kept = kept ? undefined : publish
        return both
      })
    },
  ],
  [
    'delivers at random times',
    (bus) => onPublish(bus, (publish) => [() => void setTimeout(publish, Math.random() * 5)]),
  ],
  [
    'drops a message of many',
    (bus) => {
      let count = 0
      return onPublish(bus, (publish) => ((count += 1) === 5000 ? [] : [publish]))
    },
  ],
  ['calls listeners inside of publish', (bus, all) => delivering(bus, all, (deliver) => deliver())],
  [
    'does not know who publishes',
    (bus) => ({ subscribe: (topic, listener) => bus.subscribe(topic, (message) => listener(message, 'somebody')) }),
  ],
]

const subscribing: Mutant[] = [
  [
    'subscribes a moment after subscribe resolves',
    (bus) => ({
      subscribe: async (topic, listener) => {
        const later = new Promise(setImmediate).then(() => bus.subscribe(topic, listener))
        return () => void later.then((end) => end())
      },
    }),
  ],
  [
    'ends a subscription a moment later',
    (bus) => ({
      subscribe: async (topic, listener) => {
        const end = await bus.subscribe(topic, listener)
        return () => void setImmediate(end)
      },
    }),
  ],
  ['never ends a subscription', (bus) => onEnd(bus, () => undefined)],
  [
    'ends all subscriptions of the topic',
    (bus) => {
      const ends = new Map<string, (() => void)[]>()
      return {
        subscribe: async (topic, listener) => {
          ends.set(topic, [...(ends.get(topic) ?? []), await bus.subscribe(topic, listener)])
          return () => {
            for (const end of ends.get(topic) ?? []) end()
          }
        },
      }
    },
  ],
  [
    'ends any subscription if one is ended twice',
    (bus) => {
      const ends: (() => void)[] = []
      return {
        subscribe: async (topic, listener) => {
          ends.push(await bus.subscribe(topic, listener))
          return () => ends.shift()?.()
        },
      }
    },
  ],
  [
    'keeps a function once',
    (bus) => {
      const known = new Map<MessageListener, Promise<() => void>>()
      return {
        subscribe: (topic, listener) => {
          const end = known.get(listener) ?? bus.subscribe(topic, listener)
          known.set(listener, end)
          return end
        },
      }
    },
  ],
  [
    'does not subscribe to a topic again',
    (bus) => {
      const ended = new Set<string>()
      return {
        subscribe: async (topic, listener) => {
          if (ended.has(topic)) return () => undefined
          const end = await bus.subscribe(topic, listener)
          return () => {
            ended.add(topic)
            end()
          }
        },
      }
    },
  ],
  [
    'stops at a listener that throws',
    (bus) => {
      let hasThrown = false
      return {
        subscribe: (topic, listener) =>
          bus.subscribe(topic, (message, from) => {
            if (hasThrown) return
            hasThrown = true
            listener(message, from)
            hasThrown = false
          }),
      }
    },
  ],
]

const contents: Mutant[] = [
  ['passes on the array of the sender', (bus, all) => delivering(bus, all, queueMicrotask)],
  ['cuts messages', (bus) => onContent(bus, (message) => message.subarray(0, 1024 * 1024))],
  ['drops empty messages', (bus) => onMessage(bus, (_, message) => message.length > 0)],
  ['treats content as text', (bus) => onContent(bus, (message) => Buffer.from(Buffer.from(message).toString()))],
  [
    'sends the whole memory of an array',
    (bus) => onContent(bus, ({ buffer, length }) => (length === 100 ? new Uint8Array(buffer) : undefined)),
  ],
  [
    'takes messages of any size',
    (bus) => ({ publish: (topic, message) => bus.publish(topic, message.subarray(0, 32 * 1024 * 1024)) }),
  ],
]

const requests: Mutant[] = [
  [
    'gives answers in the order of the requests',
    (bus) => {
      const waiting: ((answer: Uint8Array) => void)[] = []
      return {
        request: async (node, message, options) => {
          const own = new Promise<Uint8Array>((resolve) => waiting.push(resolve))
          const answer = await bus.request(node, message, options)
          waiting.shift()?.(answer)
          return own
        },
      }
    },
  ],
  [
    'cannot ask itself',
    (bus) => ({
      request: (node, message, options) => bus.request(node === bus.node ? 'nobody' : node, message, options),
    }),
  ],
  ['does not know who asks', (bus) => onRequest(bus, (handler) => (message) => handler(message, 'somebody'))],
  [
    'keeps the first handler',
    (bus) => {
      let isAnswering = false
      return {
        answer: (handler) => {
          if (!isAnswering) bus.answer(handler)
          isAnswering = true
        },
      }
    },
  ],
  [
    'answers a moment after answer returns',
    (bus) => ({ answer: (handler) => void setImmediate(() => bus.answer(handler)) }),
  ],
  [
    'handles a request twice',
    (bus) =>
      onRequest(bus, (handler) => async (message, from) => {
        await handler(message, from)
        return handler(message, from)
      }),
  ],
  [
    'lets any node answer',
    (bus, all) => ({
      request: (_, message, options) => bus.request(all.find((each) => each !== bus)?.node ?? '', message, options),
    }),
  ],
]

const failures: Mutant[] = [
  ['gives no answer for an unknown node', (bus) => onError(bus, 'unreachable', 'no-answer')],
  ['calls a node unreachable if its handler fails', (bus) => onError(bus, 'no-answer', 'unreachable')],
  [
    'answers with nothing if the handler fails',
    (bus) => onRequest(bus, (handler) => async (message, from) => handler(message, from).catch(() => new Uint8Array())),
  ],
  [
    'never answers if the handler fails',
    (bus) =>
      onRequest(bus, (handler) => async (message, from) => {
        try {
          return await handler(message, from)
        } catch {
          return new Promise<never>(() => undefined)
        }
      }),
  ],
  ['has no time-out', (bus) => ({ request: (node, message) => bus.request(node, message, { timeoutMs: 600_000 }) })],
  [
    'rejects with any error',
    (bus) => ({
      request: (node, message, options) =>
        bus.request(node, message, options).catch(() => Promise.reject(new Error('It failed.'))),
    }),
  ],
]

const closing: Mutant[] = [
  ['does not close', () => ({ close: async () => undefined })],
  [
    'delivers after close',
    (bus, all) => {
      let isClosed = false
      return {
        close: async () => {
          isClosed = true
          bus.answer(() => Promise.reject(new BusError('closed', 'Closed.')))
        },
        subscribe: async (topic, listener) =>
          isClosed ? Promise.reject(new BusError('closed', 'Closed.')) : bus.subscribe(topic, listener),
        request: async (node, message, options) =>
          isClosed || all.length === 0
            ? Promise.reject(new BusError('closed', 'Closed.'))
            : bus.request(node, message, options),
      }
    },
  ],
  [
    'keeps open requests when it closes',
    (bus) => ({
      request: (node, message, options) =>
        bus.request(node, message, options).catch((error: unknown) => {
          if (error instanceof BusError && error.code === 'closed' && options)
            return new Promise<never>(() => undefined)
          throw error
        }),
    }),
  ],
  [
    'throws if closed twice',
    (bus) => {
      let isClosed = false
      return {
        close: async () => {
          if (isClosed) throw new Error('Closed.')
          isClosed = true
          await bus.close()
        },
      }
    },
  ],
  [
    'throws on publish after close',
    (bus) => {
      let isClosed = false
      return {
        close: async () => {
          isClosed = true
          await bus.close()
        },
        publish: (topic, message) => {
          if (isClosed) throw new Error('Closed.')
          bus.publish(topic, message)
        },
      }
    },
  ],
]

const handles: Mutant[] = [
  [
    'keeps a timer',
    () => {
      const timer = setInterval(() => undefined, 50)
      // For the process of the tests. The contract looks earlier.
      setTimeout(() => clearInterval(timer), 4 * patienceMs).unref()
      return {}
    },
  ],
]

const names: Mutant[] = [
  ['has wildcards in topics', (bus) => renamed(bus, (topic) => (topic.includes('*') ? 'a.b' : topic))],
  ['trims topics', (bus) => renamed(bus, (topic) => topic.trim())],
  ['ends topics at NUL', (bus) => renamed(bus, (topic) => topic.split('\0')[0] ?? '')],
  ['cuts long topics', (bus) => renamed(bus, (topic) => topic.slice(0, 1000))],
  ['normalizes topics', (bus) => renamed(bus, (topic) => topic.normalize('NFC'))],
  ['encodes topics as UTF-8', (bus) => renamed(bus, (topic) => Buffer.from(topic).toString('hex'))],
  ['ignores case in topics', (bus) => renamed(bus, (topic) => topic.toLowerCase())],
  [
    'cuts long names of nodes',
    (bus, all) => ({
      request: (node, message, options) =>
        bus.request(all.find((each) => each.node.slice(0, 100) === node.slice(0, 100))?.node ?? node, message, options),
    }),
  ],
]

const interruptions: Mutant[] = [
  ['never reports a gap', () => ({ onGap: () => () => undefined })],
  [
    'reports a gap without an interruption',
    (bus) => ({
      onGap: (listener) => {
        void Promise.resolve()
          .then(listener)
          .catch(() => undefined)
        return bus.onGap(listener)
      },
    }),
  ],
  [
    'reports gaps to the interrupted node alone',
    (bus) => ({ onGap: (listener) => bus.onGap(() => void (lossOf.get(bus)?.() && listener())) }),
  ],
  [
    'loses its subscriptions in an interruption',
    (bus) => ({
      subscribe: async (topic, listener) => {
        let isLost = false
        bus.onGap(() => (isLost = true))
        return bus.subscribe(topic, (message, from) => {
          if (!isLost) listener(message, from)
        })
      },
    }),
  ],
  [
    'sends later what was published in an interruption',
    (bus) => {
      let kept: (() => void)[] = []
      bus.onGap(() => {
        for (const publish of kept.splice(0)) for (let time = 0; time < 2; time += 1) publish()
      })
      return {
        publish: (topic, message) => {
          const isCut = lossOf.get(bus)?.() ?? false
          if (isCut) kept = [...kept, () => bus.publish(topic, message)]
          else bus.publish(topic, message)
        },
      }
    },
  ],
  ['never ends a listener of gaps', (bus) => ({ onGap: (listener) => (bus.onGap(listener), () => undefined) })],
]

describe('the contract of buses', () => {
  test('is passed by the bus that all mutants are made of', async () => {
    expect(await firstFailure(() => ({}), { ms: 30_000 })).toBeUndefined()
  })

  describe.each([
    ['publishing', publishing],
    ['subscribing', subscribing],
    ['contents', contents],
    ['requests', requests],
    ['failures', failures],
    ['closing', closing],
    ['handles', handles],
    ['names', names],
    ['interruptions', interruptions],
  ] as const)('on %s', (subject, mutants) => {
    test.each(mutants)('catches a bus that %s', async (_, change) => {
      expect(await firstFailure(change, { subject, ms: patienceMs })).toMatch(`${subject}: `)
    })
  })
})

/** The title of the first test of the contract that a bus fails. Tests of the subject run first. */
async function firstFailure(
  change: Mutant[1],
  { subject = '', ms }: { subject?: string; ms: number },
): Promise<string | undefined> {
  const tests: { title: string; body: () => Promise<void> }[] = []
  testSessionBus({
    test: (title, body) => tests.push({ title, body }),
    open: async (nodes) => openMutants(nodes, change),
    canInterrupt: true,
  })
  const isNear = ({ title }: { title: string }): number => Number(title.startsWith(subject))
  for (const { title, body } of tests.toSorted((left, right) => isNear(right) - isNear(left))) {
    try {
      await withDeadline({ ms, late: () => new Error(`${title}: no end`) }, body)
    } catch {
      return title
    }
  }
  return undefined
}

/** A test of the contract takes some milliseconds; a mutant may never end one. */
const patienceMs = 500

/** Whether the bus is cut off at this moment, or was when the gap that is being reported began. */
const lossOf = new WeakMap<SessionBus, () => boolean>()

/** Local buses that can be cut off from each other. */
function openMutants(nodes: readonly string[], change: Mutant[1]): BusesUnderTest {
  const network = new LocalNetwork()
  const cut = new Set<string>()
  const cuts = new Listeners<string>()
  const gaps = new Listeners<void>(() => undefined)
  const sound = nodes.map((node) => lossy(network.join(node), { cut, cuts, gaps }))
  const buses = sound.map((bus) => changed(bus, change(bus, sound)))
  return {
    buses,
    interrupt: async (index) => {
      const node = nodes[index] ?? ''
      cut.add(node)
      cuts.notify(node)
      return async () => {
        gaps.notify()
        cut.delete(node)
        // Subscriptions of the time before are in force now.
        setImmediate(() => gaps.notify())
      }
    },
    close: async () => void (await Promise.all(sound.map((bus) => bus.close()))),
  }
}

interface Interruptions {
  cut: ReadonlySet<string>
  cuts: Listeners<string>
  gaps: Listeners<void>
}

function lossy(bus: SessionBus, { cut, cuts, gaps }: Interruptions): SessionBus {
  const ends: (() => void)[] = []
  const own = changed(bus, {
    publish: (topic, message) => {
      if (!cut.has(bus.node)) bus.publish(topic, message)
    },
    subscribe: (topic, listener) =>
      bus.subscribe(topic, (message, from) => {
        if (!cut.has(bus.node) && !cut.has(from)) listener(message, from)
      }),
    request: async (node, message, options) => {
      const isCut = (each: string): boolean => each === bus.node || each === node
      if ([...cut].some(isCut)) throw new BusError('unreachable', 'Cut off.')
      const { promise, reject } = Promise.withResolvers<never>()
      const end = cuts.add((each) => {
        if (isCut(each)) reject(new BusError('no-answer', 'Cut off.'))
      })
      return Promise.race([bus.request(node, message, options), promise]).finally(end)
    },
    onGap: (listener) => {
      const end = gaps.add(() => {
        if (cut.size === 0) listener()
      })
      ends.push(end)
      return end
    },
    close: () => {
      for (const end of ends) end()
      return bus.close()
    },
  })
  lossOf.set(own, () => cut.has(bus.node))
  return own
}

/** The bus with some of its calls replaced. */
function changed(bus: SessionBus, change: Partial<SessionBus>): SessionBus {
  return {
    node: bus.node,
    publish: (topic, message) => bus.publish(topic, message),
    subscribe: (topic, listener) => bus.subscribe(topic, listener),
    request: (node, message, options) => bus.request(node, message, options),
    answer: (handler) => bus.answer(handler),
    onGap: (listener) => bus.onGap(listener),
    close: () => bus.close(),
    ...change,
  }
}

/** Replaces a call of publish by several, or by none. */
function onPublish(bus: SessionBus, change: (publish: () => void) => (() => void)[]): Partial<SessionBus> {
  return {
    publish: (topic, message) => {
      for (const publish of change(() => bus.publish(topic, message))) publish()
    },
  }
}

function onMessage(bus: SessionBus, isDelivered: (topic: string, message: Uint8Array) => boolean): Partial<SessionBus> {
  return {
    subscribe: (topic, listener) =>
      bus.subscribe(topic, (message, from) => {
        if (isDelivered(topic, message)) listener(message, from)
      }),
  }
}

function onEnd(bus: SessionBus, end: () => void): Partial<SessionBus> {
  return {
    subscribe: async (topic, listener) => {
      await bus.subscribe(topic, listener)
      return end
    },
  }
}

/** Changes what is published; a content of undefined stays. */
function onContent(bus: SessionBus, change: (message: Uint8Array) => Uint8Array | undefined): Partial<SessionBus> {
  return { publish: (topic, message) => bus.publish(topic, change(message) ?? message) }
}

const listenersOf = new WeakMap<SessionBus, Map<string, Set<MessageListener>>>()

/** Calls the listeners of all other nodes with the array of the publisher. */
function delivering(
  bus: SessionBus,
  all: readonly SessionBus[],
  run: (deliver: () => void) => void,
): Partial<SessionBus> {
  const own = new Map<string, Set<MessageListener>>()
  listenersOf.set(bus, own)
  return {
    publish: (topic, message) => {
      const others = all.filter((other) => other !== bus)
      for (const listener of others.flatMap((other) => [...(listenersOf.get(other)?.get(topic) ?? [])])) {
        run(() => listener(message, bus.node))
      }
    },
    subscribe: async (topic, listener) => {
      own.set(topic, (own.get(topic) ?? new Set()).add(listener))
      return () => own.get(topic)?.delete(listener)
    },
  }
}

function onRequest(bus: SessionBus, change: (handler: RequestHandler) => RequestHandler): Partial<SessionBus> {
  return { answer: (handler) => bus.answer(change(async (message, from) => handler(message, from))) }
}

function onError(bus: SessionBus, from: BusError['code'], to: BusError['code']): Partial<SessionBus> {
  return {
    request: (node, message, options) =>
      bus.request(node, message, options).catch((error: unknown) => {
        throw error instanceof BusError && error.code === from ? new BusError(to, 'Another code.') : error
      }),
  }
}

function renamed(bus: SessionBus, name: (topic: string) => string): Partial<SessionBus> {
  return {
    publish: (topic, message) => bus.publish(name(topic), message),
    subscribe: (topic, listener) => bus.subscribe(name(topic), listener),
  }
}
