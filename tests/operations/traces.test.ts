import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json, text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { fakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { startChild } from '../../packages/cli/src/host/testing/child.ts'
import { call, say } from '../peers/answers.ts'
import { openChat, send } from '../terminal/chat.ts'
import { serve, untilLine } from './served.ts'

type Value = string | number | boolean | Value[]

interface ReceivedSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  start: bigint
  end: bigint
  hasFailed: boolean
  attributes: Record<string, Value>
}

/** An OTLP receiver: accepts spans as JSON, as a collector does. */
async function startReceiver(): Promise<{ url: string; spans: ReceivedSpan[]; resource: Record<string, Value> }> {
  const spans: ReceivedSpan[] = []
  const resource: Record<string, Value> = {}
  const server = createServer((request, response) => {
    void (async () => {
      expect([request.method, request.url]).toEqual(['POST', '/base/v1/traces'])
      expect(request.headers['content-type']).toBe('application/json')
      const { resourceSpans } = (await json(request)) as OtlpRequest
      for (const each of resourceSpans) {
        Object.assign(resource, valuesOf(each.resource.attributes))
        for (const { spans: sent } of each.scopeSpans) spans.push(...sent.map(spanOf))
      }
      response.setHeader('content-type', 'application/json').end('{}')
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/base`, spans, resource }
}

/** Nothing listens there. */
async function closedPort(): Promise<number> {
  const away = createServer()
  away.listen(0, '127.0.0.1')
  await once(away, 'listening')
  const { port } = away.address() as AddressInfo
  await new Promise((resolve) => away.close(resolve))
  return port
}

interface OtlpRequest {
  resourceSpans: {
    resource: { attributes: OtlpAttribute[] }
    scopeSpans: { spans: OtlpSpan[] }[]
  }[]
}

interface OtlpSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: OtlpAttribute[]
  status: { code?: number }
}

interface OtlpValue {
  stringValue?: string
  intValue?: number | string
  doubleValue?: number
  boolValue?: boolean
  arrayValue?: { values: OtlpValue[] }
}

interface OtlpAttribute {
  key: string
  value: OtlpValue
}

function spanOf({ startTimeUnixNano, endTimeUnixNano, attributes, status, ...span }: OtlpSpan): ReceivedSpan {
  const times = { start: BigInt(startTimeUnixNano), end: BigInt(endTimeUnixNano) }
  return { ...span, ...times, hasFailed: status.code === 2, attributes: valuesOf(attributes) }
}

function valuesOf(attributes: readonly OtlpAttribute[]): Record<string, Value> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]))
}

function plain({ stringValue, intValue, doubleValue, boolValue, arrayValue }: OtlpValue): Value {
  if (arrayValue) return arrayValue.values.map(plain)
  return stringValue ?? (intValue === undefined ? undefined : Number(intValue)) ?? doubleValue ?? boolValue ?? ''
}

const [internal, server, client] = [1, 2, 3]

interface Convention {
  /** The span name, from its attributes. */
  name: (attributes: Record<string, Value>) => string
  kind: number | undefined
  /** Required, or required when known, and we know them. */
  required: Record<string, 'string' | 'number' | 'boolean' | 'array'>
  /** Recommended. Any other attribute of a convention is a mistake. */
  also: Record<string, 'string' | 'number' | 'boolean' | 'array'>
}

/** The GenAI conventions (1.41, development) for our operations, and the HTTP conventions (stable). Content is opt-in and absent. */
const conventions: Record<string, Convention> = {
  invoke_agent: {
    name: (attributes) => `invoke_agent ${String(attributes['gen_ai.agent.name'])}`,
    kind: internal,
    required: {
      'gen_ai.operation.name': 'string',
      'gen_ai.provider.name': 'string',
      'gen_ai.agent.name': 'string',
      'gen_ai.conversation.id': 'string',
      'gen_ai.request.model': 'string',
    },
    also: { 'error.type': 'string' },
  },
  chat: {
    name: (attributes) => `chat ${String(attributes['gen_ai.request.model'])}`,
    kind: client,
    required: {
      'gen_ai.operation.name': 'string',
      'gen_ai.provider.name': 'string',
      'gen_ai.conversation.id': 'string',
      'gen_ai.request.model': 'string',
      'gen_ai.request.stream': 'boolean',
    },
    also: {
      'error.type': 'string',
      'gen_ai.response.id': 'string',
      'gen_ai.response.model': 'string',
      'gen_ai.response.finish_reasons': 'array',
      'gen_ai.response.time_to_first_chunk': 'number',
      'gen_ai.usage.input_tokens': 'number',
      'gen_ai.usage.output_tokens': 'number',
      'gen_ai.usage.cache_read.input_tokens': 'number',
      'gen_ai.usage.cache_creation.input_tokens': 'number',
      'gen_ai.usage.reasoning.output_tokens': 'number',
    },
  },
  execute_tool: {
    name: (attributes) => `execute_tool ${String(attributes['gen_ai.tool.name'])}`,
    kind: internal,
    required: {
      'gen_ai.operation.name': 'string',
      'gen_ai.tool.name': 'string',
      'gen_ai.tool.call.id': 'string',
      'gen_ai.tool.type': 'string',
    },
    also: { 'error.type': 'string', 'gen_ai.conversation.id': 'string' },
  },
  http: {
    name: (attributes) => `${String(attributes['http.request.method'])} ${String(attributes['http.route'])}`,
    kind: server,
    required: {
      'http.request.method': 'string',
      'http.route': 'string',
      'http.response.status_code': 'number',
      'url.path': 'string',
      'url.scheme': 'string',
    },
    also: { 'client.address': 'string', 'error.type': 'string' },
  },
}

/** What is wrong with a span, as sentences. */
function faultsOf(span: ReceivedSpan): string[] {
  const { attributes, name } = span
  const convention = conventions[String(attributes['gen_ai.operation.name'] ?? 'http')]
  if (!convention) return [`${name} has no operation of the conventions`]
  const types = { ...convention.required, ...convention.also }
  const typeOf = (value: Value): string => (Array.isArray(value) ? 'array' : typeof value)
  return [
    ...(name === convention.name(attributes) ? [] : [`${name} should be named ${convention.name(attributes)}`]),
    ...(span.kind === convention.kind ? [] : [`${name} has the kind ${span.kind}`]),
    ...(span.end >= span.start ? [] : [`${name} ends before it starts`]),
    ...(span.hasFailed === 'error.type' in attributes ? [] : [`${name} has an error without a type, or the reverse`]),
    ...Object.keys(convention.required).flatMap((key) => (key in attributes ? [] : [`${name} lacks ${key}`])),
    ...Object.entries(attributes).flatMap(([key, value]) =>
      key.startsWith('tapetree.') || types[key] === typeOf(value) ? [] : [`${name} has ${key} = ${String(value)}`],
    ),
  ]
}

test('serve --otlp sends spans by the GenAI conventions, in the trace of the caller and without content', async () => {
  const home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
  onTestFinished(() => home[Symbol.asyncDispose]())
  const receiver = await startReceiver()
  const secret = 'a-private-word'
  home.provider.script(
    call({ id: 'call-1', name: 'bash', input: { command: `echo ${secret}` } }),
    say(`It says ${secret}.`),
    { type: 'failure', error: 'auth', message: secret },
  )
  const served = await serve(home, '--otlp', receiver.url)
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const traceparent = `00-${traceId}-b7ad6b7169203331-01`
  const made = await served.ask('/api/sessions', { cwd: home.cwd, prompt: `Say ${secret}` }, { traceparent })
  const id = String(made['id'])
  const ended = await untilLine(served, id, { type: 'run_end' })
  await served.ask(`/api/sessions/${id}/prompt`, { text: 'Again' })
  await untilLine(served, id, { type: 'run_end', after: ended })
  expect(await served.stop()).toEqual({ code: 0, log: '' })

  expect(receiver.resource).toMatchObject({ 'service.name': 'tapetree', 'telemetry.sdk.language': 'nodejs' })
  expect(receiver.spans.flatMap(faultsOf)).toEqual([])
  const nameOf = new Map(receiver.spans.map(({ spanId, name }) => [spanId, name]))
  const mine = receiver.spans.filter((span) => span.traceId === traceId)
  const tree = mine.map(({ name, parentSpanId = '' }) => `${nameOf.get(parentSpanId) ?? parentSpanId} > ${name}`)
  expect(tree.toSorted()).toEqual([
    'POST /api/sessions > invoke_agent tapetree',
    'b7ad6b7169203331 > POST /api/sessions',
    'invoke_agent tapetree > chat model-1',
    'invoke_agent tapetree > chat model-1',
    'invoke_agent tapetree > execute_tool bash',
  ])
  const chat = mine.find(({ name }) => name === 'chat model-1')
  expect(chat?.attributes).toMatchObject({
    'gen_ai.conversation.id': id,
    'gen_ai.provider.name': 'fake',
    'gen_ai.usage.input_tokens': expect.any(Number),
    'gen_ai.usage.output_tokens': expect.any(Number),
  })
  const failed = receiver.spans
    .filter(({ hasFailed }) => hasFailed)
    .map(({ name, attributes }) => `${name}: ${String(attributes['error.type'])}`)
  expect(failed.toSorted()).toEqual(['chat model-1: auth', 'invoke_agent tapetree: auth'])
  const everything = JSON.stringify(receiver.spans, (_key, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  )
  expect(everything).not.toContain(secret)
})

test('a collector that is away disturbs nothing, and its failure is logged', async () => {
  const home = await fakeHome()
  onTestFinished(() => home[Symbol.asyncDispose]())
  home.provider.script(say('Hello.'))
  const port = await closedPort()
  const served = await serve(home, '--otlp', `http://127.0.0.1:${port}`)
  const { id } = await served.ask('/api/sessions', { cwd: home.cwd, prompt: 'Hi' })
  await untilLine(served, String(id), { type: 'run_end' })
  const { code, log } = await served.stop()
  expect([code, log]).toEqual([0, expect.stringContaining('"source":"otlp"')])
})

const program = new URL('../../packages/cli/src/main.ts', import.meta.url)
/** The names of the spans of a turn with one command, in the order in which they ended. */
const ofOneTurn = ['chat model-1', 'execute_tool bash', 'chat model-1', 'invoke_agent tapetree']

test('run --otlp has sent every span when it ends', async () => {
  const home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
  onTestFinished(() => home[Symbol.asyncDispose]())
  const receiver = await startReceiver()
  home.provider.script(call({ id: 'call-1', name: 'bash', input: { command: 'echo here' } }), say('Done.'))
  await using child = startChild(program, ['run', '--otlp', receiver.url, 'Begin'], home)
  expect([await child.line(), await child.ended]).toEqual(['Done.', 0])
  expect(receiver.spans.map(({ name }) => name)).toEqual(ofOneTurn)
  expect(receiver.spans.flatMap(faultsOf)).toEqual([])
  expect(new Set(receiver.spans.map(({ traceId }) => traceId)).size).toBe(1)
})

test('run --otlp says once that the collector is away, and answers all the same', async () => {
  const home = await fakeHome()
  onTestFinished(() => home[Symbol.asyncDispose]())
  home.provider.script(say('Hello.'))
  const collector = `http://127.0.0.1:${await closedPort()}`
  await using child = startChild(program, ['run', '--otlp', collector, 'Hi'], home)
  const said = text(child.process.stderr)
  expect([await child.line(), await child.ended]).toEqual(['Hello.', 0])
  const remarks = (await said).split('\n').filter((line) => line.includes('traces'))
  expect(remarks).toEqual([`! traces: The last spans could not be sent to ${collector} in time.`])
})

test('the chat sends the spans of its sessions with --otlp', async () => {
  const home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
  onTestFinished(() => home[Symbol.asyncDispose]())
  const receiver = await startReceiver()
  home.provider.script(call({ id: 'call-1', name: 'bash', input: { command: 'echo here' } }), say('Done.'))
  const command = [process.execPath, '-C', '@tapetree/source', fileURLToPath(program)] as const
  const chat = await openChat({ home, command, args: ['--otlp', receiver.url] })
  send(chat, 'Begin')
  await chat.waitFor('Done.')
  await chat.waitFor('Enter sends')
  chat.press('ctrl-c', 'ctrl-c')
  expect(await chat.exit).toBe(0)
  expect(receiver.spans.map(({ name }) => name)).toEqual(ofOneTurn)
})
