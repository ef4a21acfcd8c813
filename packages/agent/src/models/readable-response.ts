import { AnthropicEvents } from './events/anthropic-events.ts'
import { ChatEvents } from './events/chat-events.ts'
import {
  asJson,
  currentNotes,
  listOf,
  textIn,
  type EventReader,
  type Json,
  type ResponseNotes,
} from './events/event-reader.ts'
import { GeminiEvents } from './events/gemini-events.ts'
import { ResponsesEvents } from './events/responses-events.ts'
import type { ProviderApi } from './hosts.ts'
import { ModelError } from './model.ts'

export interface ResponseFormat {
  api: ProviderApi
  hasThinkTags?: boolean | undefined
}

/**
 * A `fetch` whose answers the provider package can read. Unknown kinds of events, blocks and members are skipped and
 * counted. A successful response that is not a stream of events becomes one, or an error with the text of the server.
 * Follows no redirect: keys in other headers than `authorization`, and the messages, would go to any other server.
 */
export function readableFetch(fetch: typeof globalThis.fetch, format: ResponseFormat): typeof globalThis.fetch {
  return async (input, init) => {
    const notes = currentNotes()
    const response = await fetch(input, { ...init, redirect: 'manual' })
    if (isRedirect(response)) throw await redirectError(response, input)
    if (!response.ok || !response.body) return response
    const source = new BodyReader(response.body)
    const reader = readerFor(format, notes)
    const first = await source.firstCharacter()
    const body =
      first === '{' || first === '[' || first === '<'
        ? eventsOfDocument(await source.rest(longestDocument), reader, response.url)
        : source.map(new EventStream(reader, notes))
    if (body instanceof Response) return body
    return new Response(body, { status: response.status, headers: plainHeaders(response.headers) })
  }
}

/** A browser hides the status of a redirect. */
function isRedirect({ type, status }: Response): boolean {
  return type === 'opaqueredirect' || [301, 302, 303, 307, 308].includes(status)
}

async function redirectError(response: Response, input: Parameters<typeof fetch>[0]): Promise<ModelError> {
  await response.body?.cancel()
  const from = input instanceof Request ? input.url : String(input)
  const location = response.headers.get('location') ?? ''
  const to = URL.canParse(location, from) ? new URL(location, from).host : 'another address'
  return new ModelError(
    'invalid-request',
    `${new URL(from).host} redirects requests to ${to}, and requests to models follow no redirects. If you trust that server, change the base URL.`,
    { status: response.status },
  )
}

const longestDocument = 16 * 1024 * 1024

function readerFor({ api, hasThinkTags }: ResponseFormat, notes: ResponseNotes): EventReader {
  switch (api) {
    case 'anthropic':
      return new AnthropicEvents(notes)
    case 'openai':
      return new ResponsesEvents(notes)
    case 'google':
      return new GeminiEvents(notes)
    case 'openai-compatible':
      return new ChatEvents(notes, { hasThinkTags })
    default:
      return api satisfies never
  }
}

/** Body and length have changed. */
function plainHeaders(headers: Headers): [string, string][] {
  return [...headers].filter(([name]) => !/^content-(?:length|encoding|type)$/i.test(name))
}

/** Reads text from a body and allows peeking at its beginning. */
class BodyReader {
  readonly #body: ReadableStreamDefaultReader<Uint8Array>
  readonly #decoder = new TextDecoder()
  #read = ''
  #isOver = false

  constructor(body: ReadableStream<Uint8Array>) {
    this.#body = body.getReader()
  }

  async firstCharacter(): Promise<string> {
    while (!this.#isOver && this.#read.trim() === '') await this.#readMore()
    return this.#read.trimStart().charAt(0)
  }

  async rest(maxLength: number): Promise<string> {
    while (!this.#isOver && this.#read.length < maxLength) await this.#readMore()
    if (!this.#isOver) await this.#body.cancel()
    return this.#read
  }

  map(stream: EventStream): ReadableStream<Uint8Array> {
    const encoder = new TextEncoder()
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        let made = ''
        while (made === '') {
          const text = this.#read
          this.#read = ''
          made = stream.read(text)
          if (this.#isOver && made === '') {
            made = stream.end()
            if (made !== '') controller.enqueue(encoder.encode(made))
            controller.close()
            return
          }
          if (made === '') await this.#readMore()
        }
        controller.enqueue(encoder.encode(made))
        if (!stream.isDone) return
        // What the server does after `[DONE]` cannot make the answer incomplete.
        controller.close()
        await this.#body.cancel().catch(() => undefined)
      },
      cancel: (reason) => this.#body.cancel(reason),
    })
  }

  async #readMore(): Promise<void> {
    const { done, value } = await this.#body.read()
    this.#isOver = done
    this.#read += this.#decoder.decode(value, { stream: !done })
  }
}

/** Converts server-sent events with the reader. Lines end with LF, CR LF or CR. */
class EventStream {
  readonly #reader: EventReader
  readonly #notes: ResponseNotes
  #line = ''
  #data: string[] = []
  #name = ''
  /** The server has sent `[DONE]`. */
  isDone = false
  /** The last character was CR: a following LF belongs to it. */
  #wasReturn = false

  constructor(reader: EventReader, notes: ResponseNotes) {
    this.#reader = reader
    this.#notes = notes
  }

  read(text: string): string {
    let made = ''
    let begin = 0
    for (let at = 0; at < text.length; at += 1) {
      const character = text[at]
      if (character !== '\n' && character !== '\r') {
        this.#wasReturn = false
        continue
      }
      const isSecondHalf = character === '\n' && this.#wasReturn && at === begin
      if (!isSecondHalf) made += this.#readLine(this.#line + text.slice(begin, at))
      if (!isSecondHalf) this.#line = ''
      this.#wasReturn = character === '\r'
      begin = at + 1
    }
    this.#line += text.slice(begin)
    return made
  }

  /** An event without a blank line after it is incomplete, and is dropped. */
  end(): string {
    return this.isDone ? '' : written(this.#reader.end?.(false) ?? [])
  }

  #readLine(line: string): string {
    if (line === '') return this.#readEvent()
    const colon = line.indexOf(':')
    if (colon === 0) return '' // a comment
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'data') this.#data.push(value)
    if (field === 'event') this.#name = value
    return ''
  }

  #readEvent(): string {
    const data = this.#data.join('\n')
    const name = this.#name
    this.#data = []
    this.#name = ''
    if (data.trim() === '' || this.isDone) return ''
    if (data.trim() === '[DONE]') {
      this.isDone = true
      return `${written(this.#reader.end?.(true) ?? [])}data: [DONE]\n\n`
    }
    const value = parsed(data)
    // Data that is not JSON was damaged in transit: the provider package reports that.
    if (value === undefined) return `data: ${data.replaceAll('\n', ' ')}\n\n`
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return written(this.#notes.skip('event:not-an-object'))
    }
    const event = value as Json
    const isBareError = name === 'error' && event['error'] === undefined && event['type'] !== 'error'
    return written(this.#reader.read(isBareError ? { type: 'error', error: event } : event))
  }
}

function written(events: readonly Json[]): string {
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
}

/**
 * The value of a JSON text; undefined if it is not JSON. The provider packages reject a whole answer with a member
 * `__proto__` or a `constructor` with a `prototype`, so these are dropped.
 */
function parsed(text: string): unknown {
  try {
    return maybeForbidden.test(text) ? JSON.parse(text, withoutForbidden) : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Also matches names with escapes. */
const maybeForbidden = /__proto__|constructor|\\u00/

function withoutForbidden(this: unknown, name: string, value: unknown): unknown {
  if (name === '__proto__') return undefined
  const isForbidden = name === 'constructor' && Object.hasOwn(asJson(value), 'prototype')
  return isForbidden ? undefined : value
}

/** A response in one piece: events if it contains an answer, else an error. */
function eventsOfDocument(text: string, reader: EventReader, url: string): ReadableStream<Uint8Array> | Response {
  const document = text.trimStart().startsWith('<') ? undefined : parsed(text)
  if (document === undefined) throw notAnAnswer(text, url)
  const answers = Array.isArray(document) ? listOf(document) : [asJson(document)]
  const isAnswer = answers.some(({ choices, candidates }) => Array.isArray(choices) || Array.isArray(candidates))
  if (!isAnswer) return errorResponse(asJson(answers[0]), text)
  const events = answers.flatMap((answer) => reader.read(answer))
  const last = reader.end?.(true) ?? []
  return new Response(written([...events, ...last])).body ?? new ReadableStream()
}

/** A response with the status that matches its text, so that the error is classified like any other. */
function errorResponse(document: Json, text: string): Response {
  const error = asJson(document['error'])
  const given = [error['code'], error['status'], document['code'], document['status']].map(Number)
  const status = given.find((each) => each >= 400 && each <= 599) ?? 500
  return new Response(text, { status, headers: { 'content-type': 'application/json' } })
}

function notAnAnswer(text: string, url: string): ModelError {
  const title = /<title[^>]*>([^<]*)/i.exec(text)?.[1]?.trim()
  const words = text
    .replace(/<(script|style)[^>]*>[^]*?<\/\1>/gi, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  const said = (textIn(title) || words).slice(0, 300)
  const where = URL.canParse(url) ? new URL(url).host : 'The server'
  return new ModelError(
    'network',
    `${where} sent a page instead of an answer: ${said === '' ? '(empty)' : said}. Check the base URL and any proxy.`,
  )
}
