import type { Problem } from './protocol/frames.ts'

/** A request or command that was rejected or could not be sent. `problem` is the server's answer. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  readonly problem: Problem

  constructor(problem: Problem, options?: ErrorOptions) {
    super(problem.detail ?? problem.title, options)
    this.problem = problem
  }

  /** The kind of problem, such as `session-busy`, for programs. */
  get type(): string {
    return this.problem.type
  }

  /** The HTTP status; 0 if no server answered. */
  get status(): number {
    return this.problem.status
  }
}

/** A problem that the client itself reports. */
export function localProblem(type: LocalProblem, detail: string, options?: ErrorOptions): ProblemError {
  return new ProblemError({ type, title: titles[type], status: statuses[type] ?? 0, detail }, options)
}

export type LocalProblem =
  | 'unreachable'
  | 'closed'
  | 'unreadable-answer'
  | 'invalid-command'
  | 'too-large'
  | 'bad-frame'
  | 'end-missed'

const titles: Record<LocalProblem, string> = {
  unreachable: 'Unreachable',
  closed: 'Closed',
  'unreadable-answer': 'Unreadable answer',
  'invalid-command': 'Invalid command',
  'too-large': 'Too large',
  'bad-frame': 'Bad frame',
  'end-missed': 'End missed',
}

const statuses: Partial<Record<LocalProblem, number>> = { 'invalid-command': 422, 'too-large': 413, 'bad-frame': 400 }
