import {
  startFakeProvider,
  type FakeAnswer,
  type FakeBytes,
  type FakeProvider,
  type FakeRequest,
} from '@tapetree/agent/testing'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { environmentOf, type Contender } from './contenders.ts'

/** How long a program may do nothing that a trial waits for. */
const patienceMs = 60_000

/** A model that decides on the messages of a request alone, so it treats every library alike. */
export type Decide = (conversation: Conversation, request: FakeRequest) => FakeAnswer

/** What a request tells the model, in the format of Anthropic. */
export interface Conversation {
  calls: { id: string; name: string }[]
  /** By the id of the call. */
  results: Map<string, string>
  /** The text of the last user message. */
  lastUserText: string
  tools: string[]
}

interface StartOptions {
  args?: readonly string[]
  env?: Record<string, string>
}

/** One trial: a fake provider, the outside world that the tools use, and the programs under test. */
export class Stage implements AsyncDisposable {
  readonly provider: FakeProvider
  readonly world: World
  readonly #contender: Contender
  readonly #folder: string
  readonly #children: ChildProcess[] = []

  private constructor(from: { contender: Contender; folder: string; provider: FakeProvider; world: World }) {
    this.#contender = from.contender
    this.#folder = from.folder
    this.provider = from.provider
    this.world = from.world
  }

  static async open(contender: Contender, { folder, decide }: { folder: string; decide: Decide }): Promise<Stage> {
    const provider = await startFakeProvider({ strict: false })
    provider.script((request) => {
      const broken = brokenCall(request)
      if (broken !== undefined) return { type: 'failure', error: 'invalid-request', message: broken }
      const answer = decide(conversationOf(request), request)
      return request.body['stream'] === true ? answer : inOnePiece(answer, request)
    })
    return new Stage({ contender, folder, provider, world: await startWorld() })
  }

  /** Starts a file of a program. Its lines of output arrive in `lines`. */
  async start(file: string, { args = [], env = {} }: StartOptions = {}): Promise<Started> {
    const child = spawn(process.execPath, [...this.#contender.flags, resolve(file), ...args], {
      cwd: this.#folder,
      env: {
        ...(await environmentOf(this.#contender, { folder: this.#folder, providerUrl: this.provider.url })),
        SHOP_URL: this.world.url,
        LAB_URL: this.world.url,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own, so that programs which it started end with the trial.
      detached: true,
    })
    this.#children.push(child)
    return new Started(child)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { pid = 0 } of this.#children) killGroup(pid)
    await this.provider.close()
    this.world.close()
  }
}

/** A program under test. */
export class Started {
  readonly child: ChildProcess
  readonly lines: string[] = []
  /** Resolves with the exit code; null if a signal ended it. */
  readonly ended: Promise<number | null>
  errors = ''
  #onLine: (() => void)[] = []

  constructor(child: ChildProcess) {
    this.child = child
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.errors += text))
    const reader = createInterface({ input: child.stdout! })
    reader.on('line', (line) => {
      this.lines.push(line)
      for (const tell of this.#onLine.splice(0)) tell()
    })
    const closed = once(reader, 'close')
    this.ended = once(child, 'exit').then(async ([code]) => {
      await closed
      for (const tell of this.#onLine.splice(0)) tell()
      return code as number | null
    })
  }

  /** Resolves with whether a line fits, now or later; with false when the program has ended or waited too long. */
  async printed(fits: (line: string) => boolean, waitMs = patienceMs): Promise<boolean> {
    let isOver = false
    const over = Promise.race([this.ended, timer(waitMs)]).then(() => (isOver = true))
    while (!this.lines.some(fits)) {
      if (isOver) return false
      await Promise.race([new Promise<void>((tell) => this.#onLine.push(tell)), over])
    }
    return true
  }

  /** The exit code; kills a program that does not end. */
  async end(waitMs = patienceMs): Promise<number | null> {
    const code = await Promise.race([this.ended, timer(waitMs).then(() => undefined)])
    if (code === undefined) this.child.kill('SIGKILL')
    return code ?? null
  }
}

/** The outside world: a shop, a lab and the weather. It counts what happens to it. */
export interface World {
  url: string
  /** The paths that were called. */
  calls: string[]
  /** Resolves when the first refund has been made. Its answer never comes. */
  refunding: Promise<void>
  close: () => void
}

async function startWorld(): Promise<World> {
  const calls: string[] = []
  const refund = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    calls.push(path)
    answer(path, response, () => {
      if (calls.filter((each) => each === path).length > 1) return response.end('Refunded.')
      return refund.resolve()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    refunding: refund.promise,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

function answer(path: string, response: ServerResponse, refund: () => void): void {
  if (path.endsWith('/refund')) refund()
  else if (path.startsWith('/orders/')) response.end('A lamp for 49 EUR, paid.')
  else if (path.startsWith('/samples/')) response.end('7.2')
  else response.end('4 degrees Celsius')
}

interface Block {
  type: string
  id?: string
  name?: string
  text?: string
  tool_use_id?: string
  content?: string | Block[]
}

function conversationOf({ body }: FakeRequest): Conversation {
  const messages = body['messages'] as { role: string; content: string | Block[] }[]
  const blocksOf = (content: string | Block[]): Block[] =>
    typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const blocks = messages.flatMap(({ content }) => blocksOf(content))
  const textIn = (content: string | Block[] | undefined): string =>
    content === undefined
      ? ''
      : blocksOf(content)
          .map(({ text = '' }) => text)
          .join('')
  const tools = (body['tools'] ?? []) as { name: string }[]
  return {
    calls: blocks.flatMap(({ type, id = '', name = '' }) => (type === 'tool_use' ? [{ id, name }] : [])),
    results: new Map(
      blocks.flatMap(({ type, tool_use_id: id = '', content }) =>
        type === 'tool_result' ? [[id, textIn(content)] as const] : [],
      ),
    ),
    lastUserText: textIn(messages.findLast(({ role }) => role === 'user')?.content),
    tools: tools.map(({ name }) => name),
  }
}

export function say(...chunks: string[]): FakeAnswer {
  return { type: 'answer', content: [{ type: 'text', chunks }] }
}

let calls = 0
export function call(name: string, input: Record<string, unknown>): FakeAnswer {
  calls += 1
  return {
    type: 'answer',
    content: [{ type: 'tool_call', id: `toolu_${calls}`, name, chunks: [JSON.stringify(input)] }],
  }
}

/**
 * The real provider rejects a call without a result, and a result without a call. Its other rules depend on features that a library may
 * switch on, so they do not count here.
 */
const callRules = new Set(['every-call-has-its-result', 'every-result-has-its-call', 'one-result-per-call'])

export function brokenCall({ broken }: FakeRequest): string | undefined {
  return broken.find(({ rule }) => callRules.has(rule))?.demand
}

/** The answer to a request that does not ask for a stream. */
function inOnePiece({ content }: FakeAnswer, { number, model }: FakeRequest): FakeBytes {
  const blocks = content.flatMap((each): Record<string, unknown>[] => {
    if (each.type === 'text') return [{ type: 'text', text: each.chunks.join('') }]
    if (each.type !== 'tool_call') return []
    return [{ type: 'tool_use', id: each.id, name: each.name, input: JSON.parse(each.chunks.join('')) as unknown }]
  })
  const message = {
    id: `msg_${number}`,
    type: 'message',
    role: 'assistant',
    model,
    content: blocks,
    stop_reason: blocks.some((block) => block['type'] === 'tool_use') ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 5 },
  }
  const headers = { 'content-type': 'application/json' }
  return { type: 'bytes', headers, chunks: [Buffer.from(JSON.stringify(message))] }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

function timer(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref())
}
