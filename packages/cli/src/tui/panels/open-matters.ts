import type { Transcript, TranscriptItem } from '@tapetree/session/view'

/** What an interrupted run left open, one line each. Not yet harmless. */
export function openMatters({ path, permissions }: Pick<Transcript, 'path' | 'permissions'>): string[] {
  // A model change may follow the last message.
  const last = path.items.slice(-20).findLast(({ type }) => type === 'user' || type === 'assistant')
  const asked = permissions.map(({ title }) => `waiting for your answer: ${firstLine(title)}`)
  return [...(last ? leftBy(last) : []), ...asked]
}

function leftBy(item: TranscriptItem): string[] {
  if (item.type === 'user') return ['your last message has no answer yet']
  if (item.type !== 'assistant') return []
  const calls = item.parts.filter((part) => part.type === 'tool_call')
  if (calls.length > 0 && calls.every(({ result }) => result)) return ['the model has not answered the last results']
  return calls
    .filter(({ result }) => !result)
    .map(({ name, input, status }) => {
      const what = ['command', 'path', 'description']
        .map((key) => input[key])
        .find((value) => typeof value === 'string')
      const call = what === undefined ? name : `${name} ${firstLine(what)}`
      return status === 'running' ? `started: ${call}` : `not started: ${call}`
    })
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? ''
}
