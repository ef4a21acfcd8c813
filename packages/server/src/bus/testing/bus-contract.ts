import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { BusError, maxMessageBytes, type BusErrorCode, type MessageListener, type SessionBus } from '../session-bus.ts'

/** Nodes that are connected with each other. */
export interface BusesUnderTest {
  buses: SessionBus[]
  /** Cuts the node of this number off from all others until the returned function is called. */
  interrupt?: (index: number) => Promise<() => Promise<void>>
  close: () => Promise<void>
}

export interface BusContractRunner {
  /** The test function of the runner in use. */
  test: (title: string, body: () => Promise<void>) => void
  /** Opens a bus for each name. All of them reach each other when it resolves. */
  open: (nodes: readonly string[]) => Promise<BusesUnderTest>
  /** The adapter can lose messages, so `open` returns `interrupt`. */
  canInterrupt: boolean
}

/** The contract that every adapter of the bus must pass. */
export function testSessionBus({ test, open, canInterrupt }: BusContractRunner): void {
  const it: It = (title, body, nodes = ['a', 'b', 'c']) =>
    test(title, async () => {
      const given = await open(nodes)
      const [a, b, c] = given.buses as [SessionBus, SessionBus, SessionBus]
      try {
        const interrupt = given.interrupt ?? (() => Promise.reject(new Error('This bus cannot be interrupted.')))
        await body({ a, b, c, interrupt })
      } finally {
        await given.close()
      }
    })
  for (const part of [publishing, subscribing, contents, requests, failures, closing]) part(it)
  if (canInterrupt) {
    // Between two nodes, the first gap after an interruption is that of the connection between them.
    interruptions((title, body) => it(title, body, ['a', 'b']))
    gapsOfThree(it)
  }
  names(test, open)
  handles(test, open)
}

interface Nodes {
  a: SessionBus
  b: SessionBus
  c: SessionBus
  interrupt: (index: number) => Promise<() => Promise<void>>
}

type It = (title: string, body: (given: Nodes) => Promise<void>, nodes?: readonly string[]) => void

function publishing(it: It): void {
  it('publishing: a message reaches all other nodes with the name of its publisher, and not the publisher', async ({
    a,
    b,
    c,
  }) => {
    const [atA, atB, atC] = [await inbox(a, 'news'), await inbox(b, 'news'), await inbox(c, 'news')]
    a.publish('news', bytes('one'))
    await Promise.all([atB.until('one'), atC.until('one')])
    b.publish('news', bytes('two'))
    await Promise.all([atA.until('two'), atC.until('two')])
    // It would have come before this one.
    c.publish('news', bytes('end'))
    await Promise.all([atA.until('end'), atB.until('end')])
    assert.deepEqual(atA.received, ['b: two', 'c: end'])
    assert.deepEqual(atB.received, ['a: one', 'c: end'])
    assert.deepEqual(atC.received, ['a: one', 'b: two'])
  })

  it('publishing: messages arrive in order, each once', async ({ a, b, c }) => {
    const at = await inbox(c, 'news')
    for (let number = 0; number < 100; number += 1) {
      a.publish('news', bytes(`${number}`))
      b.publish('news', bytes(`${number}`))
      if (number % 10 === 0) await new Promise(setImmediate)
    }
    a.publish('news', bytes('end'))
    b.publish('news', bytes('end'))
    await Promise.all([at.untilLine('a: end'), at.untilLine('b: end')])
    const numbers = Array.from({ length: 100 }, (_, number) => `${number}`)
    for (const from of ['a', 'b']) {
      const received = at.received.filter((line) => line.startsWith(`${from}: `))
      assert.deepEqual(
        received,
        [...numbers, 'end'].map((text) => `${from}: ${text}`),
      )
    }
  })

  it('publishing: 10,000 messages arrive in order', async ({ a, b }) => {
    const at = await inbox(b, 'news')
    for (let number = 0; number < 10_000; number += 1) a.publish('news', bytes(`${number}`))
    a.publish('news', bytes('end'))
    await at.until('end')
    assert.equal(at.received.length, 10_001)
    assert.ok(at.received.every((line, number) => number === 10_000 || line === `a: ${number}`))
  })

  it('publishing: only the subscribers of the topic receive a message', async ({ a, b }) => {
    const [news, other] = [await inbox(b, 'news'), await inbox(b, 'other')]
    a.publish('other', bytes('one'))
    a.publish('news', bytes('two'))
    a.publish('nowhere', bytes('three'))
    a.publish('other', bytes('end'))
    a.publish('news', bytes('end'))
    await Promise.all([news.until('end'), other.until('end')])
    assert.deepEqual(news.received, ['a: two', 'a: end'])
    assert.deepEqual(other.received, ['a: one', 'a: end'])
  })

  it('publishing: no listener runs before publish returns', async ({ a, b }) => {
    let isPublishing = false
    const during: boolean[] = []
    const at = await inbox(b, 'news', () => during.push(isPublishing))
    isPublishing = true
    a.publish('news', bytes('one'))
    isPublishing = false
    await at.until('one')
    assert.deepEqual(during, [false])
  })
}

function subscribing(it: It): void {
  it('subscribing: a subscription is in force when subscribe resolves', async ({ a, b, c }) => {
    for (let round = 0; round < 20; round += 1) {
      const [publisher, subscriber] = round % 2 === 0 ? [a, b] : [b, c]
      const at = await inbox(subscriber, `topic ${round}`)
      publisher.publish(`topic ${round}`, bytes('one'))
      await at.until('one')
    }
  })

  it('subscribing: many subscriptions at once are in force', async ({ a, b, c }) => {
    const topics = Array.from({ length: 200 }, (_, number) => `topic ${number}`)
    const inboxes = await Promise.all(topics.flatMap((topic) => [inbox(b, topic), inbox(c, topic)]))
    for (const topic of topics) a.publish(topic, bytes(topic))
    await Promise.all(inboxes.map((each, index) => each.until(topics[Math.floor(index / 2)] ?? '')))
  })

  it('subscribing: the returned function ends this subscription alone, and may be called again', async ({ a, b }) => {
    const [ended, other] = [await inbox(b, 'news'), await inbox(b, 'news')]
    a.publish('news', bytes('one'))
    await Promise.all([ended.until('one'), other.until('one')])
    ended.end()
    ended.end()
    a.publish('news', bytes('two'))
    await other.until('two')
    ended.end()
    const again = await inbox(b, 'news')
    other.end()
    a.publish('news', bytes('three'))
    await again.until('three')
    assert.deepEqual(ended.received, ['a: one'])
    assert.deepEqual(other.received, ['a: one', 'a: two'])
    assert.deepEqual(again.received, ['a: three'])
  })

  it('subscribing: a topic that nobody listened to for a while can be subscribed to again', async ({ a, b }) => {
    for (let round = 0; round < 10; round += 1) {
      const at = await inbox(b, 'news')
      a.publish('news', bytes(`${round}`))
      await at.until(`${round}`)
      assert.deepEqual(at.received, [`a: ${round}`])
      at.end()
    }
  })

  it('subscribing: a listener that ends itself receives nothing of what is on its way', async ({ a, b }) => {
    const [first, all] = [await inbox(b, 'news', () => first.end()), await inbox(b, 'news')]
    for (let number = 0; number < 100; number += 1) a.publish('news', bytes(`${number}`))
    await all.until('99')
    assert.deepEqual(first.received, ['a: 0'])
  })

  it('subscribing: the same function twice is called twice, until one of the two ends', async ({ a, b }) => {
    const received: string[] = []
    const listener: MessageListener = (message) => void received.push(text(message))
    const ends = [await b.subscribe('news', listener), await b.subscribe('news', listener)]
    const last = await inbox(b, 'news')
    a.publish('news', bytes('one'))
    await last.until('one')
    ends[0]?.()
    a.publish('news', bytes('two'))
    await last.until('two')
    assert.deepEqual(received, ['one', 'one', 'two'])
  })

  it('subscribing: a listener that throws harms no other', async ({ a, b, c }) => {
    const fail = (): void => {
      throw new Error('A listener of the contract throws.')
    }
    const [before, , after, elsewhere] = [
      await inbox(b, 'news'),
      await inbox(b, 'news', fail),
      await inbox(b, 'news'),
      await inbox(c, 'news'),
    ]
    for (const each of ['one', 'two']) {
      a.publish('news', bytes(each))
      await Promise.all([before.until(each), after.until(each), elsewhere.until(each)])
    }
  })

  it('subscribing: a listener may subscribe', async ({ a, b }) => {
    const added: Promise<() => void>[] = []
    const at = await inbox(b, 'news', () => added.push(b.subscribe('news', () => undefined)))
    a.publish('news', bytes('one'))
    await at.until('one')
    await Promise.all(added)
    assert.equal(added.length, 1)
  })
}

function contents(it: It): void {
  const all = Uint8Array.from({ length: 256 }, (_, value) => value)
  const large = randomBytes(4 * 1024 * 1024)
  const samples: [string, Uint8Array][] = [
    ['no bytes', new Uint8Array()],
    ['one byte', new Uint8Array([0])],
    ['all bytes', all],
    ['line ends', bytes('\r\n\r\nPUB x 1\r\n')],
    ['a part of an array', all.subarray(100, 200)],
    ['4 MiB', large],
    ['4 MiB and a byte', randomBytes(large.length + 1)],
  ]

  it('contents: messages arrive byte for byte, large ones between small ones', async ({ a, b }) => {
    const received: Uint8Array[] = []
    const { promise, resolve } = Promise.withResolvers<void>()
    await b.subscribe('news', (message) => {
      if (received.push(message) === samples.length) resolve()
    })
    for (const [, sample] of samples) a.publish('news', sample)
    await promise
    for (const [index, [title, sample]] of samples.entries()) {
      assert.ok(Buffer.from(received[index] ?? []).equals(sample), title)
    }
  })

  it('contents: requests and answers arrive byte for byte', async ({ a, b }) => {
    b.answer(async (message) => message)
    a.answer(async (message) => message)
    for (const [title, sample] of samples) {
      assert.ok(Buffer.from(await a.request('b', sample)).equals(sample), title)
      assert.ok(Buffer.from(await a.request('a', sample)).equals(sample), title)
    }
  })

  it('contents: large messages of several nodes at once arrive whole', async ({ a, b, c }) => {
    const [fromA, fromB] = [randomBytes(large.length), randomBytes(large.length)]
    const received: Record<string, number> = { a: 0, b: 0 }
    const { promise, resolve } = Promise.withResolvers<void>()
    await c.subscribe('news', (message, from) => {
      if (Buffer.from(message).equals(from === 'a' ? fromA : fromB)) received[from] = (received[from] ?? 0) + 1
      if (received['a'] === 3 && received['b'] === 3) resolve()
    })
    for (let round = 0; round < 3; round += 1) {
      a.publish('news', fromA)
      b.publish('news', fromB)
    }
    await promise
  })

  it('contents: what the sender does with its array later changes nothing', async ({ a, b }) => {
    const at = await inbox(b, 'news')
    b.answer(async (message) => message)
    const message = Buffer.from('one')
    a.publish('news', message)
    const answer = a.request('b', message)
    message.fill(0)
    await at.until('one')
    assert.equal(text(await answer), 'one')
  })

  it('contents: a message that is too large is rejected', async ({ a, b }) => {
    const tooLarge = new Uint8Array(maxMessageBytes + 1)
    b.answer(async (message) => (message.length === 0 ? tooLarge : message))
    assert.throws(() => a.publish('news', tooLarge), RangeError)
    await assert.rejects(a.request('b', tooLarge), RangeError)
    await fails(a.request('b', new Uint8Array(), { timeoutMs: longMs }), 'no-answer')
    assert.equal(text(await a.request('b', bytes('one'))), 'one')
  })
}

function requests(it: It): void {
  it('requests: the named node answers, and knows who asks', async ({ a, b, c }) => {
    for (const bus of [a, b, c]) {
      bus.answer(async (message, from) => bytes(`${bus.node} answers ${text(message)} of ${from}`))
    }
    assert.equal(text(await a.request('b', bytes('one'))), 'b answers one of a')
    assert.equal(text(await a.request('c', bytes('two'))), 'c answers two of a')
    assert.equal(text(await c.request('b', bytes('three'))), 'b answers three of c')
  })

  it('requests: a node can ask itself', async ({ b }) => {
    b.answer(async (message, from) => bytes(`${text(message)} of ${from}`))
    assert.equal(text(await b.request('b', bytes('one'))), 'one of b')
  })

  it('requests: many at once get their own answers, in any order', async ({ a, b, c }) => {
    const waiting: (() => void)[] = []
    const { promise: all, resolve } = Promise.withResolvers<void>()
    b.answer(async (message, from) => {
      await new Promise<void>((go) => {
        if (waiting.push(go) === 400) resolve()
      })
      return bytes(`${from} ${text(message)}`)
    })
    const numbers = Array.from({ length: 200 }, (_, number) => number)
    const answers = Promise.all(
      [a, c].flatMap((bus) =>
        numbers.map(async (number) => text(await bus.request('b', bytes(`${number}`), { timeoutMs: longMs }))),
      ),
    )
    await all
    for (const go of waiting.toReversed()) go()
    assert.deepEqual(
      await answers,
      ['a', 'c'].flatMap((from) => numbers.map((number) => `${from} ${number}`)),
    )
  })

  it('requests: a handler can ask back', async ({ a, b }) => {
    a.answer(async (message) => bytes(`[${text(message)}]`))
    b.answer(async (message, from) => b.request(from, message))
    assert.equal(text(await a.request('b', bytes('one'))), '[one]')
  })

  it('requests: a handler is in force when answer returns, and replaces the one before', async ({ a, b }) => {
    for (const round of ['one', 'two', 'three']) {
      b.answer(async () => bytes(round))
      assert.equal(text(await a.request('b', bytes('which'))), round)
    }
  })

  it('requests: a request is handled once', async ({ a, b, c }) => {
    const handled: string[] = []
    for (const bus of [a, b, c]) {
      bus.answer(async (message) => {
        handled.push(`${bus.node} ${text(message)}`)
        return message
      })
    }
    for (const each of ['one', 'two']) await a.request('b', bytes(each))
    assert.deepEqual(handled, ['b one', 'b two'])
  })
}

function failures(it: It): void {
  it('failures: an unknown node and one without a handler are unreachable', async ({ a, b }) => {
    await fails(a.request('nobody', bytes('one'), { timeoutMs: longMs }), 'unreachable')
    await fails(a.request('b', bytes('one'), { timeoutMs: longMs }), 'unreachable')
    await fails(a.request('a', bytes('one'), { timeoutMs: longMs }), 'unreachable')
    b.answer(async (message) => message)
    assert.equal(text(await a.request('b', bytes('two'))), 'two')
  })

  it('failures: a handler that fails gives no answer, and answers the next request', async ({ a, b }) => {
    const thrown = (): never => {
      throw new Error('A handler of the contract throws.')
    }
    const failing = [thrown, async () => thrown()]
    for (const handler of failing) {
      b.answer(handler)
      await fails(a.request('b', bytes('one'), { timeoutMs: longMs }), 'no-answer')
      await fails(b.request('b', bytes('one'), { timeoutMs: longMs }), 'no-answer')
    }
    b.answer(async (message) => message)
    assert.equal(text(await a.request('b', bytes('two'))), 'two')
  })

  it('failures: an answer that takes too long is none, and not that of the next request', async ({ a, b }) => {
    const late = Promise.withResolvers<void>()
    b.answer(async (message) => {
      if (text(message) === 'slow') await late.promise
      return message
    })
    for (const bus of [a, b]) await fails(bus.request('b', bytes('slow'), { timeoutMs: 30 }), 'no-answer')
    const next = a.request('b', bytes('next'))
    late.resolve()
    assert.equal(text(await next), 'next')
    assert.equal(text(await a.request('b', bytes('last'))), 'last')
  })

  it('failures: a node that closes gives no answer to open requests, and is unreachable then', async ({ a, b, c }) => {
    const asked = Promise.withResolvers<void>()
    b.answer(async () => {
      asked.resolve()
      return new Promise<never>(() => undefined)
    })
    c.answer(async (message) => message)
    const open = fails(a.request('b', bytes('one'), { timeoutMs: 2000 }), 'no-answer')
    await asked.promise
    await b.close()
    await open
    await fails(a.request('b', bytes('two'), { timeoutMs: longMs }), 'unreachable')
    assert.equal(text(await a.request('c', bytes('three'))), 'three')
  })
}

function closing(it: It): void {
  it('closing: open requests are rejected', async ({ a, b }) => {
    const asked = Promise.withResolvers<void>()
    let count = 0
    const never = async (): Promise<never> => {
      if ((count += 1) === 2) asked.resolve()
      return new Promise<never>(() => undefined)
    }
    a.answer(never)
    b.answer(never)
    const open = ['a', 'b'].map((node) => fails(a.request(node, bytes('one'), { timeoutMs: longMs }), 'closed'))
    await asked.promise
    await a.close()
    await Promise.all(open)
  })

  it('closing: a closed bus subscribes and requests nothing more, and publishes nothing', async ({ a, b, c }) => {
    const at = await inbox(b, 'news')
    c.answer(async (message) => message)
    const end = await a.subscribe('news', () => undefined)
    await a.close()
    await fails(
      a.subscribe('news', () => undefined),
      'closed',
    )
    for (const node of ['a', 'b', 'c']) await fails(a.request(node, bytes('one')), 'closed')
    a.publish('news', bytes('one'))
    a.answer(async (message) => message)
    a.onGap(() => undefined)()
    end()
    await a.close()
    c.publish('news', bytes('end'))
    await at.until('end')
    assert.deepEqual(at.received, ['c: end'])
  })

  it('closing: nothing is delivered after close resolves, and the others go on', async ({ a, b, c }) => {
    const [atB, atC] = [await inbox(b, 'news'), await inbox(c, 'news')]
    for (let number = 0; number < 500; number += 1) a.publish('news', bytes(`${number}`))
    await atB.until('0')
    await b.close()
    const count = atB.received.length
    for (let number = 500; number < 1000; number += 1) a.publish('news', bytes(`${number}`))
    await atC.until('999')
    assert.equal(atB.received.length, count)
    assert.equal(atC.received.length, 1000)
  })

  it('closing: a listener that closes its bus is not called again', async ({ a, b, c }) => {
    let closed: Promise<void> | undefined
    const [atB, atC] = [await inbox(b, 'news', () => void (closed ??= b.close())), await inbox(c, 'news')]
    for (let number = 0; number < 100; number += 1) a.publish('news', bytes(`${number}`))
    await Promise.all([atB.until('0'), atC.until('99')])
    await closed
    assert.deepEqual(atB.received, ['a: 0'])
  })
}

function interruptions(it: It): void {
  for (const [index, who] of ['publisher', 'subscriber'].entries()) {
    it(`interruptions: after one of the ${who} both learn of the gap, and everything continues`, async (given) => {
      const { a, b, interrupt } = given
      const at = await inbox(b, 'news')
      b.answer(async (message) => message)
      for (let round = 0; round < 3; round += 1) {
        const gaps = [nextGap(a), nextGap(b)]
        const restore = await interrupt(index)
        a.publish('news', bytes(`lost ${round}`))
        await restore()
        await Promise.all(gaps)
        a.publish('news', bytes(`round ${round}`))
        await at.until(`round ${round}`)
        assert.equal(text(await a.request('b', bytes('still there'))), 'still there')
      }
      const rounds = at.received.filter((line) => !line.includes('lost'))
      assert.deepEqual(rounds, ['a: round 0', 'a: round 1', 'a: round 2'])
      assert.equal(new Set(at.received).size, at.received.length)
    })
  }

  it('interruptions: whatever is lost is followed by a gap', async ({ a, b, interrupt }) => {
    const events: (number | 'gap')[] = []
    const at = await inbox(b, 'news', () => events.push(Number(at.received.at(-1)?.slice('a: '.length))))
    b.onGap(() => events.push('gap'))
    let number = 0
    const publisher = setInterval(() => a.publish('news', bytes(`${(number += 1)}`)), 2)
    try {
      for (const index of [0, 1, 0]) {
        const gap = nextGap(b)
        const restore = await interrupt(index)
        await restore()
        await gap
      }
      await at.until(`${number + 20}`)
    } finally {
      clearInterval(publisher)
    }
    const numbers = events.filter((each) => each !== 'gap')
    assert.ok(numbers.every((each, place) => place === 0 || each > (numbers[place - 1] ?? 0)))
    const lastLoss = numbers.findLast((each, place) => each !== (numbers[place - 1] ?? 0) + 1)
    if (lastLoss !== undefined) assert.ok(events.lastIndexOf('gap') >= events.indexOf(lastLoss) - 1)
  })

  it('interruptions: requests end with an error, and succeed later', async ({ a, b, interrupt }) => {
    const asked = Promise.withResolvers<void>()
    b.answer(async (message) => {
      if (text(message) !== 'wait') return message
      asked.resolve()
      return new Promise<never>(() => undefined)
    })
    const open = fails(a.request('b', bytes('wait'), { timeoutMs: 2000 }), 'no-answer')
    await asked.promise
    const gaps = [nextGap(a), nextGap(b)]
    const restore = await interrupt(0)
    await open
    await assert.rejects(a.request('b', bytes('one'), { timeoutMs: 500 }), BusError)
    await restore()
    await Promise.all(gaps)
    assert.equal(text(await a.request('b', bytes('two'))), 'two')
  })

  it('interruptions: subscriptions of that time are in force afterwards', async ({ a, b, interrupt }) => {
    const ended = await inbox(b, 'ended')
    const gaps = [nextGap(a), nextGap(b)]
    const restore = await interrupt(1)
    const subscribed = inbox(b, 'news')
    ended.end()
    await restore()
    const at = await subscribed
    await Promise.all(gaps)
    a.publish('ended', bytes('one'))
    a.publish('news', bytes('one'))
    await at.until('one')
    assert.deepEqual(ended.received, [])
  })
}

function gapsOfThree(it: It): void {
  it('interruptions: without one there is no gap', async ({ a, b, c }) => {
    let gaps = 0
    for (const bus of [a, b, c]) bus.onGap(() => (gaps += 1))
    const at = await inbox(b, 'news')
    b.answer(async (message) => message)
    for (let number = 0; number < 100; number += 1) a.publish('news', randomBytes(20_000))
    a.publish('news', bytes('end'))
    await at.until('end')
    await a.request('b', bytes('one'))
    await c.close()
    await a.request('b', bytes('two'))
    assert.equal(gaps, 0)
  })

  it('interruptions: listeners of gaps are independent of each other, and can end', async ({ a, interrupt }) => {
    let ended = 0
    a.onGap(() => (ended += 1))()
    a.onGap(() => {
      throw new Error('A listener of the contract throws.')
    })
    const gap = nextGap(a)
    const restore = await interrupt(0)
    await restore()
    await gap
    assert.equal(ended, 0)
  })

  it('interruptions: a bus can be closed in one', async ({ a, b, c, interrupt }) => {
    let afterClose = 0
    a.onGap(() => (afterClose += 1))
    const restore = await interrupt(0)
    const subscribed = fails(
      a.subscribe('news', () => undefined).then(() => a.request('b', bytes('one'))),
      'closed',
      'unreachable',
    )
    await a.close()
    await subscribed
    await restore()
    const at = await inbox(c, 'news')
    b.publish('news', bytes('one'))
    await at.until('one')
    assert.equal(afterClose, 0)
  })
}

/** Names that an adapter could confuse if it did not encode them. */
const hostileNames = [
  '',
  ' ',
  'a',
  'A',
  'a.b',
  'a.*',
  'a.>',
  '*',
  '>',
  '.',
  '..',
  'a b',
  'a  b',
  'a\tb',
  'a\nb',
  'a\r\nSUB b 1',
  'a/b',
  'a%2Fb',
  'a_0020b',
  'a\0b',
  'a\0',
  '\0',
  'é',
  'e\u0301',
  '\u{1f600}',
  '\ud800',
  '\ud801',
  '\ufffd',
  '"',
  '\\',
  '__proto__',
  'constructor',
  '$SYS.>',
  '_INBOX.a',
  'x'.repeat(10_000),
  `${'x'.repeat(10_000)}y`,
  `${'.'.repeat(5000)}*`,
]

/** Connecting every node with every other takes a while, so these are fewer. */
const hostileNodes = [
  '',
  'a.b',
  'a b',
  '*',
  '>',
  'a\0\r\n',
  '\ud800',
  '\ud801',
  'x'.repeat(5000),
  `${'x'.repeat(5000)}y`,
]

function names(test: BusContractRunner['test'], open: BusContractRunner['open']): void {
  test('names: no topic matches another one', async () => {
    const { buses, close } = await open(['a', 'b'])
    const [a, b] = buses as [SessionBus, SessionBus]
    try {
      const inboxes = []
      for (const topic of hostileNames) inboxes.push(await inbox(b, topic))
      for (const [number, topic] of hostileNames.entries()) a.publish(topic, bytes(`${number}`))
      for (const topic of hostileNames) a.publish(topic, bytes('end'))
      await Promise.all(inboxes.map((each) => each.until('end')))
      for (const [number, each] of inboxes.entries()) {
        assert.deepEqual(each.received, [`a: ${number}`, 'a: end'], JSON.stringify(hostileNames[number]))
      }
      for (const [number, each] of inboxes.entries()) if (number % 2 === 0) each.end()
      for (const topic of hostileNames) a.publish(topic, bytes('after'))
      await Promise.all(inboxes.filter((_, number) => number % 2 === 1).map((each) => each.until('after')))
      assert.ok(inboxes.every((each, number) => each.received.length === (number % 2 === 0 ? 2 : 3)))
    } finally {
      await close()
    }
  })

  test('names: no node is taken for another one', async () => {
    const { buses, close } = await open(hostileNodes)
    try {
      const [first, ...others] = buses as [SessionBus, ...SessionBus[]]
      const senders: string[] = []
      const { promise, resolve } = Promise.withResolvers<void>()
      await first.subscribe('news', (_, from) => {
        if (senders.push(from) === others.length) resolve()
      })
      for (const [index, bus] of buses.entries()) {
        assert.equal(bus.node, hostileNodes[index])
        bus.answer(async (_, from) => bytes(JSON.stringify([index, hostileNodes.indexOf(from)])))
      }
      for (const [asking, bus] of buses.entries()) {
        for (const [asked, node] of hostileNodes.entries()) {
          assert.equal(text(await bus.request(node, bytes('who'))), JSON.stringify([asked, asking]))
        }
      }
      for (const bus of others) bus.publish('news', bytes('one'))
      await promise
      assert.deepEqual(senders.toSorted(), hostileNodes.slice(1).toSorted())
      await fails(first.request('x', bytes('one')), 'unreachable')
    } finally {
      await close()
    }
  })
}

function handles(test: BusContractRunner['test'], open: BusContractRunner['open']): void {
  test('handles: a closed bus keeps no process running', async () => {
    const before = await settledHandles()
    const { buses, close } = await open(['a', 'b'])
    const [a, b] = buses as [SessionBus, SessionBus]
    const at = await inbox(b, 'news')
    b.answer(async (message) => (text(message) === 'never' ? new Promise<never>(() => undefined) : message))
    a.publish('news', bytes('one'))
    await at.until('one')
    await a.request('b', bytes('one'), { timeoutMs: longMs })
    await fails(a.request('b', bytes('never'), { timeoutMs: 20 }), 'no-answer')
    const pending = fails(a.request('b', bytes('never'), { timeoutMs: longMs }), 'closed')
    await Promise.all([a.close(), b.close()])
    await pending
    await close()
    // The system reports the end of a socket a moment later.
    const deadline = Date.now() + 20_000
    while (openHandles() > before && Date.now() < deadline) await new Promise(setImmediate)
    assert.ok(openHandles() <= before, process.getActiveResourcesInfo().join(' '))
  })
}

/** Sockets, servers and timers that keep the process running. */
function openHandles(): number {
  return process.getActiveResourcesInfo().filter((type) => /Timeout|TCP|TLS|Pipe/.test(type)).length
}

/** Their number when those of earlier tests are gone, and the runner has set a timer for this one. */
async function settledHandles(): Promise<number> {
  for (let count = -1; ;) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    const now = openHandles()
    if (now === count) return now
    count = now
  }
}

/** Longer than a test may take: what ends earlier did not end by this time-out. */
const longMs = 120_000

interface Inbox {
  /** Each message after the name of its publisher. */
  received: string[]
  /** Resolves when a message with this text has arrived. */
  until: (text: string) => Promise<void>
  untilLine: (line: string) => Promise<void>
  end: () => void
}

async function inbox(bus: SessionBus, topic: string, onMessage: () => void = () => undefined): Promise<Inbox> {
  const received: string[] = []
  const waiting = new Set<(line: string) => void>()
  let unsubscribe = (): void => undefined
  const end = (): void => unsubscribe()
  const untilSome = (isWanted: (line: string) => boolean): Promise<void> =>
    new Promise((resolve) => {
      if (received.some(isWanted)) return resolve()
      const check = (line: string): void => {
        if (!isWanted(line)) return
        waiting.delete(check)
        resolve()
      }
      waiting.add(check)
    })
  unsubscribe = await bus.subscribe(topic, (message, from) => {
    const line = `${from}: ${text(message)}`
    received.push(line)
    for (const check of waiting) check(line)
    onMessage()
  })
  return {
    received,
    until: (wanted) => untilSome((line) => line.endsWith(`: ${wanted}`)),
    untilLine: (wanted) => untilSome((line) => line === wanted),
    end,
  }
}

function nextGap(bus: SessionBus): Promise<void> {
  return new Promise((resolve) => {
    const end = bus.onGap(() => {
      end()
      resolve()
    })
  })
}

async function fails(promise: Promise<unknown>, ...codes: BusErrorCode[]): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof BusError, String(error))
    assert.ok(codes.includes(error.code), `${error.code} is not ${codes.join(' or ')}`)
    return true
  })
}

function bytes(content: string): Uint8Array {
  return new TextEncoder().encode(content)
}

function text(message: Uint8Array): string {
  return Buffer.from(message).toString()
}
