import type { FakeAnswer, FakeContent, FakeErrorKind, FakeFinish, FakeUsage } from './fake-script.ts'
import type { RuleTable } from './request-rule.ts'

/** How one provider speaks HTTP. Frames are written as they are, one after the other. */
export interface WireFormat {
  /** As `Model.api` has it. */
  api: string
  /** What a provider package has to be given as the base of its URLs. */
  basePath: string
  /** Reads the path of a request; undefined if another format serves it. */
  route(path: string): Route | undefined
  /** What the real provider demands of a request. */
  rules: RuleTable
  /** A piece of an answer. Pieces of one kind of content come open, chunks, close. */
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
  /** The compatible host that the base URL names. */
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

/** Seconds since 1970, in every answer: nothing here depends on when it runs. */
export const created = 1_767_225_600
