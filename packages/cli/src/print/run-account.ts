import type { Usage } from '@tapetree/session'
import type { AssistantItem, Transcript, TranscriptError } from '@tapetree/session/view'

/** The answer and usage of a run, recorded when it ended: the next run may have started before it is reported. */
export interface RunAccount {
  /** The text of the last message. It is the answer once the run is over: no call follows it. */
  readonly text: string
  readonly usage: Readonly<Required<Usage>>
  readonly turns: number
  readonly durationMs: number
  readonly error: TranscriptError | null
}

/** The state of a session when a run started. */
export interface RunBeginning {
  readonly seq: number
  readonly usage: Transcript['usage']
  /** In milliseconds. */
  readonly at: number
}

export function accountOf(transcript: Transcript, beginning: RunBeginning, now: number): RunAccount {
  const answers = answersSince(transcript, beginning.seq)
  const [last] = answers
  return {
    text: last ? textIn(last) : '',
    usage: combine(transcript.usage, beginning.usage, (after, before) => after - before),
    turns: answers.length,
    durationMs: now - beginning.at,
    error: transcript.lastError,
  }
}

/** Combines two runs for one prompt: the text is that of the second. */
export function inAll(first: RunAccount, second: RunAccount): RunAccount {
  return {
    ...second,
    usage: combine(first.usage, second.usage, (one, other) => one + other),
    turns: first.turns + second.turns,
    durationMs: first.durationMs + second.durationMs,
  }
}

export function textIn({ parts }: AssistantItem): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** Newest first. */
function answersSince({ path: { items } }: Transcript, seq: number): AssistantItem[] {
  const found: AssistantItem[] = []
  for (let index = items.length - 1; index >= 0; index--) {
    const item = items.at(index)
    if (!item || item.seq <= seq) break
    if (item.type === 'assistant') found.push(item)
  }
  return found
}

function combine(
  left: RunAccount['usage'],
  right: RunAccount['usage'],
  each: (left: number, right: number) => number,
): Required<Usage> {
  const names = Object.keys(left) as (keyof Usage)[]
  return Object.fromEntries(names.map((name) => [name, each(left[name], right[name])])) as Required<Usage>
}
