// The calls of the proof: what the model asks for, and what its result must say. Both follow from the id alone.
import { randomFrom } from '../../../scripts/figure/random.ts'

export interface PlannedCall {
  tool: string
  input: Record<string, unknown>
  /** What the result must contain, in this order. */
  says: readonly string[]
  /** Or this: a job that has ended before its call could be answered, or has not printed yet. */
  orSays?: readonly string[]
  /** The line that it leaves in the ledger of the folder, once. */
  ledger?: string
}

export interface Job {
  tag: string
  calls: number
  /** The first command waits for this file. */
  gate?: string
  /** The user types a command meanwhile. */
  isTyped?: boolean
}

export function promptOf({ tag, calls, gate = '-' }: Job): string {
  return `call ${tag} ${calls} ${gate}`
}

export function jobOf(prompt: string): Job | undefined {
  const [, tag, calls, gate = '-'] = /^call (\S+) (\d+) (\S+)/.exec(prompt) ?? []
  return tag === undefined ? undefined : { tag, calls: Number(calls), ...(gate !== '-' && { gate }) }
}

export const sharedText = 'The quick brown fox.'
const kinds = ['command', 'command', 'failing', 'long', 'write', 'edit', 'read', 'grep', 'job', 'output'] as const

/** The command that the user types while the model works. */
export function typedOf({ tag, gate }: Job): { command: string; says: readonly string[]; ledger: string } {
  const id = `${tag}-typed`
  const lines = ['line 1', 'line 2', 'line 3']
  const body =
    gate === undefined
      ? 'for n in 1 2 3; do echo line $n; sleep 0.2; done'
      : `until test -e ${gate}; do sleep 0.05; done`
  return {
    command: `echo ${id} >> ledger; echo begin ${id}; ${body}; echo end ${id}; exit ${typedExitCode}`,
    says: [`begin ${id}`, ...(gate === undefined ? lines : []), `end ${id}`],
    ledger: id,
  }
}

export const typedExitCode = 5

/** `jobId`: of the last job in the background, as the model has seen it. */
export function callOf({ tag, gate }: Job, step: number, jobId: string | undefined): PlannedCall {
  const id = `${tag}-${step}`
  if (step === 1 && gate !== undefined) {
    const command = `echo ${id} >> ledger; echo begin ${id}; until test -e ${gate}; do sleep 0.05; done; echo end ${id}; exit 7`
    return { tool: 'bash', input: { command }, says: [`begin ${id}`, `end ${id}`, 'Exit code 7.'], ledger: id }
  }
  const random = randomFrom([...id].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 2147483647, 7))
  const kind = kinds[Math.floor(random() * kinds.length)]
  const command = (body: string, code = 0): PlannedCall => ({
    tool: 'bash',
    input: { command: `echo ${id} >> ledger; echo begin ${id}; ${body}; echo end ${id}; exit ${code}` },
    says: [`begin ${id}`, `end ${id}`, ...(code === 0 ? [] : [`Exit code ${code}.`])],
    ledger: id,
  })
  switch (kind) {
    case 'command':
      return command('true')
    case 'failing':
      return command('sleep 0.1', 3)
    case 'long': {
      const planned = command('for n in 1 2 3 4 5 6; do echo line $n; sleep 0.2; done', 4)
      const lines = ['line 1', 'line 2', 'line 3', 'line 4', 'line 5', 'line 6']
      return { ...planned, says: [`begin ${id}`, ...lines, `end ${id}`, 'Exit code 4.'] }
    }
    case 'write':
      return { tool: 'write', input: { path: `made/${id}.txt`, content: `made by ${id}\n` }, says: [`${id}.txt`] }
    case 'edit':
      return {
        tool: 'edit',
        // A second time, the old text is not there.
        input: { path: `slots/${tag}.txt`, oldText: `slot ${step};`, newText: `done ${step};` },
        says: [`${tag}.txt`],
      }
    case 'read':
      return { tool: 'read', input: { path: 'shared.txt', offset: 1, limit: step }, says: [sharedText] }
    case 'job':
      return {
        tool: 'bash',
        input: { command: `echo ${id} >> ledger; echo job ${id}; sleep 0.3; echo over ${id}`, background: true },
        says: ['in the background as job-'],
        orSays: [`job ${id}`, `over ${id}`],
        ledger: id,
      }
    case 'output':
      if (jobId !== undefined)
        return { tool: 'job_output', input: { jobId, since: 0 }, says: ['job '], orSays: ['[Still running.'] }
      return { tool: 'ls', input: { path: '.', limit: step }, says: ['shared.txt'] }
    case 'grep':
    default:
      return { tool: 'grep', input: { pattern: 'quick', path: 'shared.txt', limit: step }, says: ['quick'] }
  }
}
