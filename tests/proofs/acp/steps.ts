/** What the unruly agent does in a turn. It takes the steps from its prompt. */
export type Step =
  /** Says so many chunks, each with a token of its own. */
  | { do: 'say'; count: number }
  | { do: 'think' }
  /** A call. `announced` never starts, `open` never ends. `inside` is said while it runs. */
  | { do: 'call'; id: string; kind: string; flow: 'done' | 'failed' | 'open' | 'announced'; inside?: true }
  /** Asks for permission, and does it if it may. */
  | { do: 'ask'; id: string }
  /** A late or wrong change of a call. */
  | { do: 'change'; id: string }
  | { do: 'plan' }
  | { do: 'commands' }
  /** Requests to the client. */
  | { do: 'write' | 'read' | 'run'; name: string }
  | { do: 'pause'; ms: number }
  /** Until the turn is cancelled. */
  | { do: 'wait' }
  /** For ever; ignores a cancel. */
  | { do: 'hang' }
  | { do: 'flood'; count: number; size: number }
  /** What does not fit into one line of the log: the input of a call, a plan, or an answer in many parts. */
  | { do: 'bulky'; kind: (typeof bulks)[number]; id: string }
  /** Says on after a cancel, before it ends the turn. */
  | { do: 'linger' }
  | { do: 'noise'; kind: (typeof noises)[number] }
  /** Updates after the end of the turn: in the same moment, or somewhat later. */
  | { do: 'late'; when: 'now' | 'soon' }
  /** A message without an end that is larger than any may be. */
  | { do: 'huge' }
  | { do: 'error' }
  | { do: 'refuse' }
  /** Ends as `kill -9` does, maybe in the middle of a message, or after it has closed its stdin and said more. */
  | { do: 'die'; inMessage: boolean; isDeaf: boolean }

const bulks = ['deep', 'wide', 'plan', 'parts'] as const

/** Messages that the protocol does not allow, or that are about something that does not exist. */
const noises = [
  'text',
  'json',
  'another-session',
  'unknown-call',
  'malformed-update',
  'unknown-answer',
  'unknown-method',
  'another-session-asks',
  'answered-twice',
] as const

/** One thing that the agent did, as it wrote it down before it did it. */
export type Deed = { agent: string } & (
  | { type: 'start'; pid: number }
  | { type: 'session'; session: string; how: 'new' | 'load' | 'resume' }
  /** `lines`: the lines of the log at that moment. `overlaps`: an earlier turn of the session is not over. */
  | { type: 'prompt'; turn: string; session: string; words: string[]; lines: number; overlaps: boolean }
  /** `astray` must reach nobody, `soon` at most one reader. */
  | { type: 'said'; turn: string; token: string; as: 'told' | 'astray' | 'soon' }
  | { type: 'cancel' }
  | { type: 'answer'; call: string; outcome: string; lines: number }
  | { type: 'effect'; what: 'write' | 'run' }
  | { type: 'end'; turn: string; reason: string }
  /** From here on it is no surprise if the agent ends, or is ended. */
  | { type: 'fatal'; why: string }
)

export const tokens = /<[0-9a-f]{8}\.\d+>/g
export const words = /word-\d+/g

/** A prompt that makes the agent take these steps. The word names it. */
export function promptOf(word: string, steps: readonly Step[]): string {
  return `${word} ⟦${JSON.stringify(steps)}⟧`
}

/** The steps of the last prompt in a text. */
export function stepsIn(text: string): { word: string; steps: Step[] } | undefined {
  const [, word = '', json = ''] = [...text.matchAll(/(word-\d+) ⟦(\[.*?\])⟧/gs)].at(-1) ?? []
  return json === '' ? undefined : { word, steps: JSON.parse(json) as Step[] }
}

type Weighted = [weight: number, make: () => Step]

/** Steps of a turn, as a seed has them. `number` makes the ids of calls. */
export function randomSteps(random: () => number, { number, calm }: { number: number; calm: boolean }): Step[] {
  const int = (count: number): number => Math.floor(random() * count)
  const any = <T>(list: readonly T[]): T => list[int(list.length)] as T
  let calls = 0
  const id = (): string => (random() < 0.15 ? 'again' : `call-${number}-${++calls}`)
  const known = (): string => (calls > 0 ? `call-${number}-${1 + int(calls)}` : 'nobody')
  const kinds = ['read', 'edit', 'execute', 'search', 'think', 'other']
  const saying: Weighted = [8, () => ({ do: 'say', count: 1 + int(6) })]
  const choices: Weighted[] = [
    saying,
    [2, () => ({ do: 'think' })],
    [4, () => ({ do: 'call', id: id(), kind: any(kinds), flow: any(['done', 'done', 'failed']) })],
    [2, () => ({ do: 'call', id: id(), kind: any(kinds), flow: 'done', inside: true })],
    [1, () => ({ do: 'call', id: id(), kind: any(kinds), flow: any(['open', 'announced']) })],
    [4, () => ({ do: 'ask', id: id() })],
    [1, () => ({ do: 'change', id: known() })],
    [1, () => ({ do: 'plan' })],
    [0.5, () => ({ do: 'commands' })],
    [1.5, () => ({ do: any(['write', 'read', 'run'] as const), name: `file-${int(3)}.txt` })],
    [3, () => ({ do: 'pause', ms: int(20) })],
    [1, () => ({ do: 'wait' })],
    [1, () => ({ do: 'linger' })],
    [1, () => ({ do: 'late', when: any(['now', 'soon'] as const) })],
    [2, () => ({ do: 'noise', kind: any(noises) })],
    [0.3, () => ({ do: 'bulky', kind: any(bulks), id: id() })],
    [0.6, () => ({ do: 'flood', count: 50 + int(800), size: 10 + int(2000) })],
    ...(calm
      ? []
      : ([
          [0.3, () => ({ do: 'hang' })],
          [0.5, () => ({ do: 'error' })],
          [0.3, () => ({ do: 'refuse' })],
          [0.9, () => ({ do: 'die', inMessage: random() < 0.3, isDeaf: random() < 0.3 })],
          [0.1, () => ({ do: 'huge' })],
          [0.05, () => ({ do: 'flood', count: 34, size: 512 * 1024 })],
        ] satisfies Weighted[])),
  ]
  const total = choices.reduce((sum, [weight]) => sum + weight, 0)
  return Array.from({ length: 1 + int(6) }, () => {
    let at = random() * total
    const [, make] = choices.find(([weight]) => (at -= weight) < 0) ?? saying
    return make()
  })
}
