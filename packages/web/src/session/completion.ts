import type { RestClient } from '@tapetree/client'
import type { OpenedSession } from './use-session.ts'

/** Something that can be put in place of the word at the cursor. */
export interface Completion {
  readonly text: string
  readonly detail: string
  /** Completed further, as a folder is. */
  readonly isOpen?: boolean
}

/** The word that the cursor is in, if it can be completed. */
export interface CompletedWord {
  readonly kind: 'command' | 'argument' | 'file'
  readonly start: number
  /** Without `/` or `@`. */
  readonly typed: string
  /** Of an argument. */
  readonly command?: string
}

export function wordAt(text: string, cursor: number): CompletedWord | undefined {
  const before = text.slice(0, cursor)
  const [command, name] = /^\/([\w:-]*)$/.exec(before) ?? []
  if (command !== undefined) return { kind: 'command', start: 0, typed: name ?? '' }
  const [argument, of = '', typed = ''] = /^\/(model|thinking|mode) +(\S*)$/.exec(before) ?? []
  if (argument !== undefined) return { kind: 'argument', start: cursor - typed.length, typed, command: of }
  const [, file] = /(?:^|\s)@([^\s@]*)$/.exec(before) ?? []
  return file === undefined ? undefined : { kind: 'file', start: cursor - file.length - 1, typed: file }
}

export const levels = ['off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export const modes = ['ask', 'accept-edits', 'sandboxed', 'plan', 'auto'] as const

/** A command that opens something on the page. */
export type PageCommand = 'help' | 'undo' | 'redo' | 'blocked'

type OwnCommand = { readonly says: string } & (
  | { readonly run: (opened: OpenedSession, argument: string) => Promise<unknown> }
  | { readonly page: PageCommand }
)

/** Commands of this page. The server offers more: skills and prompt templates. */
export const ownCommands: Readonly<Record<string, OwnCommand>> = {
  compact: {
    says: 'Summarize the conversation: /compact [what to keep]',
    run: ({ session }, instructions) => session.run('compact', instructions === '' ? {} : { instructions }),
  },
  model: {
    says: 'Choose the model: /model provider/model',
    run: ({ session }, name) => {
      const [provider = '', ...model] = name.split('/')
      if (model.length === 0) throw new Error('Name the model as provider/model.')
      return session.set({ model: { provider, modelId: model.join('/') } })
    },
  },
  thinking: {
    says: `Choose how long the model thinks: ${levels.join(', ')}`,
    run: ({ session }, level) => session.set({ thinkingLevel: oneOf(levels, level) }),
  },
  mode: {
    says: `Choose what the agent may do without asking: ${modes.join(', ')}`,
    run: ({ session }, mode) => session.set({ mode: oneOf(modes, mode) }),
  },
  rename: {
    says: 'Rename this session: /rename name',
    run: ({ session }, name) => {
      if (name === '') throw new Error('Write the new name after /rename.')
      return session.run('rename', { name })
    },
  },
  retry: { says: 'Run again from here', run: ({ session }) => session.run('retry', {}) },
  resume: {
    says: 'Resume the interrupted run',
    run: ({ session }) => session.run('resume', { by_person: true }),
  },
  stop: { says: 'Stop the run', run: ({ session }) => session.abort() },
  undo: { says: 'Go back to before your last message', page: 'undo' },
  redo: { says: 'Take back the last step back', page: 'redo' },
  blocked: { says: 'Show files that the sandbox took back, and apply them', page: 'blocked' },
  help: { says: 'Show keys and commands', page: 'help' },
}

/** The command of this page that a message is, with what follows it. `/retry/x` is a path. */
export function ownCommandIn(text: string): { own: OwnCommand; argument: string } | undefined {
  const [, name = '', argument = ''] = /^\/([\w-]+)(?:\s+([\s\S]*))?$/.exec(text) ?? []
  const own = Object.hasOwn(ownCommands, name) ? ownCommands[name] : undefined
  return own && { own, argument: argument.trim() }
}

function oneOf<T extends string>(known: readonly T[], given: string): T {
  const found = known.find((each) => each === given)
  if (found === undefined) throw new Error(`Choose one of ${known.join(', ')}.`)
  return found
}

/** At most this many are offered. */
const maxOffers = 8

export async function completionsFor(
  word: CompletedWord,
  { session }: OpenedSession,
  rest: RestClient,
): Promise<Completion[]> {
  const typed = word.typed.toLowerCase()
  const matching = (all: Completion[]): Completion[] =>
    all.filter(({ text }) => text.toLowerCase().includes(typed)).slice(0, maxOffers)
  if (word.kind === 'command') {
    const own = Object.entries(ownCommands).map(([name, { says }]) => ({ text: `/${name}`, detail: says }))
    const offered = (session.state('commands') ?? []).map(({ name, description }) => ({
      text: `/${name.replace(/^\//, '')}`,
      detail: description,
    }))
    return matching([...own, ...offered.filter(({ text }) => !Object.hasOwn(ownCommands, text.slice(1)))])
  }
  if (word.kind === 'argument') {
    if (word.command === 'thinking') return matching(levels.map((text) => ({ text, detail: '' })))
    if (word.command === 'mode') return matching(modes.map((text) => ({ text, detail: '' })))
    const { models } = await rest.models()
    return matching(
      models.map(({ provider, modelId, name }) => ({ text: `${provider}/${modelId}`, detail: name ?? '' })),
    )
  }
  // The server does not have the files of another machine.
  if (session.state('config')?.workspace) return []
  const { files } = await rest.files(session.sessionId, { q: word.typed, limit: maxOffers })
  return files.map(({ path, type }) => ({
    text: `@${path}${type === 'folder' && !path.endsWith('/') ? '/' : ''}`,
    detail: '',
    isOpen: type === 'folder',
  }))
}
