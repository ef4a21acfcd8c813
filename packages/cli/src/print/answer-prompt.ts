import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { harmless } from '../text/harmless.ts'
import { askAgain, type CheckedAnswer, type OutputSchema } from './output-schema.ts'
import type { Ended, PrintSession } from './print-session.ts'
import { inAll } from './run-account.ts'

export interface AnsweredPrompt extends Ended {
  /** Set if a schema was given and the answer matches it. */
  output?: unknown
}

/** Sends one prompt and waits for its end. Asks once more if the answer does not match the schema. */
export async function answerPrompt(
  session: PrintSession,
  { text, imageIds }: { text: string; imageIds: string[] },
  schema: OutputSchema | undefined,
): Promise<AnsweredPrompt> {
  const asked = schema ? `${text}\n\n${schema.instructions}` : text
  const first = await ask(session, asked, imageIds, schema)
  if (first.failure || first.checked?.type !== 'invalid') return withOutput(first)
  const again = await ask(session, askAgain(first.checked.fault), [], schema)
  const second = { ...again, account: inAll(first.account, again.account) }
  if (second.failure || second.checked?.type !== 'invalid') return withOutput(second)
  return { ...second, failure: notFitting(second.checked.fault, session.handle.sessionId) }
}

interface Asked extends Ended {
  checked: CheckedAnswer | undefined
}

async function ask(
  session: PrintSession,
  text: string,
  imageIds: string[],
  schema: OutputSchema | undefined,
): Promise<Asked> {
  const { ended } = await session.send('prompt', text, imageIds)
  const answered = await ended
  const checked = answered.end.type === 'run' ? schema?.check(answered.account.text) : undefined
  return { ...answered, checked }
}

function withOutput({ checked, ...ended }: Asked): AnsweredPrompt {
  return checked?.type === 'valid' ? { ...ended, output: checked.value } : ended
}

function notFitting(fault: string, sessionId: string): Failure {
  return new Failure(
    exitCodes.runFailed,
    'The answer does not match the schema, and neither does the second attempt.',
    {
      type: 'output-invalid',
      why: harmless(fault),
      next: [`tapetree sessions show ${sessionId}`],
    },
  )
}
