import type { FakeAnswer, FakeContent, FakeErrorKind, FakeFinish, FakeUsage } from './fake-script.ts'
import type { RuleTable } from './request-rule.ts'

/** The HTTP format of one provider. Frames are written unchanged, one after the other. */
export interface WireFormat {
  /** Equals `Model.api`. */
  api: string
  /** The path of the base URL for a provider package. */
  basePath: string
  /** Parses the path of a request; undefined if another format serves it. */
  route(path: string): Route | undefined
  /** The rules of the real provider for a request. */
  rules: RuleTable
  /** Creates the frames of an answer. The frames of one content are: open, chunks, close. */
  frames(answer: WholeAnswer): FrameWriter
  keepAlive: string
  error(
    kind: FakeErrorKind,
    how: { message?: string | undefined; host?: string | undefined },
  ): { status: number; body: unknown }
  /** An error in the stream. */
  errorFrame(kind: FakeErrorKind, message?: string): string
}

interface Route {
  /** The compatible host in the base URL. */
  host?: string
  /** The model, if the path names it and not the body. */
  model?: string
}

export interface FrameWriter {
  begin(): string[]
  /** A block and its index. */
  open(content: SpokenContent, index: number): string[]
  chunk(content: SpokenContent, index: number, text: string): string[]
  close(content: SpokenContent, index: number): string[]
  end(): string[]
}

export type SpokenContent = Extract<FakeContent, { type: 'text' | 'reasoning' | 'tool_call' }>

export interface WholeAnswer {
  /** Counted from 1, for ids that are the same in every run. */
  number: number
  model: string
  host: string | undefined
  content: SpokenContent[]
  usage: Required<FakeUsage>
  finish: FakeFinish
}

export function wholeAnswer(
  answer: FakeAnswer,
  request: { number: number; model: string; host: string | undefined },
): WholeAnswer {
  const content = answer.content.filter((each) => each.type !== 'keep_alive' && each.type !== 'wait')
  const hasCalls = content.some(({ type }) => type === 'tool_call')
  return {
    ...request,
    content,
    usage: { cacheRead: 0, cacheWrite: 0, reasoning: 0, ...(answer.usage ?? { input: 10, output: 5 }) },
    finish: answer.finish ?? (hasCalls ? 'tool-calls' : 'stop'),
  }
}

/** One event of a stream, named or not. */
export function sseFrame(data: unknown, event?: string): string {
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`
}

/** Seconds since 1970, constant in every answer. */
export const created = 1_767_225_600
