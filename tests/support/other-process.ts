import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { SessionError, type Session } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { onTestFinished } from 'vitest'
import { ask } from './said.ts'

/** Another process that has a session open. */
export interface OtherProcess {
  pid: number
  /** Appends a user message there; `ok`, or the code of the error. */
  ask(words: string): Promise<string>
  /** Ends it as `kill -9` does. */
  kill(): Promise<void>
}

/** Starts a process that opens a session for writing; it ends with the test. */
export async function openElsewhere(folder: string, sessionId: string): Promise<OtherProcess> {
  const child = fork(import.meta.filename, [folder, sessionId], { execArgv: ['-C', '@tapetree/source'] })
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  onTestFinished(kill)
  const opened = await answerOf(child)
  if (opened !== 'open') throw new Error(`The other process could not open the session: ${opened}`)
  return {
    pid: child.pid ?? 0,
    ask: async (words) => {
      const answered = answerOf(child)
      child.send(words)
      return answered
    },
    kill,
  }
}

async function answerOf(child: ChildProcess): Promise<string> {
  const [answer] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => [`exit ${String(code)}`]),
  ])
  return String(answer)
}

/** What the other process does: opens the session, then appends what it is told to. */
async function obey(folder: string, sessionId: string): Promise<void> {
  const session = await openFileStore({ folder }).open(sessionId)
  process.on('message', (words: string) => void answer(session, words))
  process.send?.(session.readOnlyReason ?? 'open')
}

async function answer(session: Session, words: string): Promise<void> {
  const outcome = await ask(session, words).then(
    () => 'ok',
    (error: unknown) => (error instanceof SessionError ? error.code : String(error)),
  )
  process.send?.(outcome)
}

if (import.meta.main) await obey(process.argv[2] ?? '', process.argv[3] ?? '')
