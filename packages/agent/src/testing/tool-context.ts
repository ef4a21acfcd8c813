import type { BlobReference } from '@tapetree/session'
import type { RecordDraft } from '@tapetree/session/format'
import { createHash } from 'node:crypto'
import { systemClock } from '@tapetree/session/util/wait'
import type { Access, Answer, Question, Tool, ToolContext, ToolOutput } from '../tools/tool.ts'

export interface TestContext extends ToolContext {
  readonly records: RecordDraft[]
  readonly blobs: Map<string, Uint8Array>
  readonly questions: Question[]
  readonly observed: string[]
  /** What happened, in order: `blob 5d41…`, `record file_write`. */
  readonly steps: string[]
}

export interface TestContextOptions extends Partial<ToolContext> {
  cwd: string
  answer?: Answer
}

/** The context of a tool in a session, and a record of what it did there. */
export function testContext({ answer, ...given }: TestContextOptions): TestContext {
  const records: RecordDraft[] = []
  const blobs = new Map<string, Uint8Array>()
  const questions: Question[] = []
  const observed: string[] = []
  const steps: string[] = []
  return {
    sessionId: 'session-1',
    runId: 'run-1',
    callId: 'call-1',
    signal: new AbortController().signal,
    clock: systemClock,
    localFolder: undefined,
    append: async (record) => {
      records.push(record)
      steps.push(`record ${record.type}`)
    },
    putBlob: async (bytes): Promise<BlobReference> => {
      const sha256 = createHash('sha256').update(bytes).digest('hex')
      blobs.set(sha256, Uint8Array.from(bytes))
      steps.push(`blob ${sha256}`)
      return { sha256, size: bytes.length }
    },
    getBlob: async (sha256) => {
      const bytes = blobs.get(sha256)
      if (!bytes) throw new Error(`No blob ${sha256}`)
      return bytes
    },
    observe: (text) => void observed.push(text),
    ask: async (question) => {
      questions.push(question)
      return answer ?? { text: '', isCancelled: true }
    },
    reach: () => Promise.resolve(undefined),
    readmit: async () => ({ type: 'allowed' }),
    records,
    blobs,
    questions,
    observed,
    steps,
    ...given,
  }
}

/** Checks and runs a call like the loop, without a gate. An invalid input is an error like any other. */
export async function callTool(tool: Tool, input: unknown, context: ToolContext): Promise<ToolOutput> {
  const checked = tool.check(input, context)
  return typeof checked === 'string' ? { content: checked, isError: true } : checked.run(context)
}

export function accessOf(tool: Tool, input: unknown, place: { cwd: string }): readonly Access[] {
  const checked = tool.check(input, place)
  if (typeof checked === 'string') throw new Error(checked)
  return checked.access
}
