import { didYouMean } from '../../text/did-you-mean.ts'

/** The commands of the chat itself. A session adds others, from prompts, skills and extensions. */
export const slashTable = [
  { name: 'help', says: 'show keys and commands' },
  { name: 'model', argument: '[provider/model]', says: 'choose the model' },
  { name: 'thinking', argument: '[level]', says: 'choose how long the model thinks' },
  { name: 'mode', argument: '[mode]', says: 'choose what the agent may do without asking' },
  { name: 'undo', says: 'take back your last message and what the agent changed' },
  { name: 'redo', says: 'take back the last undo' },
  { name: 'diff', says: 'show what this session changed' },
  { name: 'context', says: 'show what fills the context, and undo a compaction' },
  { name: 'blocked', says: 'show files that the sandbox took back, and apply them' },
  { name: 'permissions', says: 'show rules and where they come from, and accept proposed ones' },
  { name: 'mcp', says: 'show MCP servers, and accept changed tools' },
  { name: 'jobs', says: 'show background jobs and their output' },
  { name: 'tree', says: 'show the branches of this session' },
  { name: 'queue', says: 'show queued messages' },
  { name: 'sessions', says: 'open another session' },
  { name: 'new', says: 'start a new session' },
  { name: 'fork', says: 'continue in a copy of this session' },
  { name: 'name', argument: '<name>', says: 'rename this session' },
  { name: 'label', argument: '[label]', says: 'label the current entry' },
  { name: 'compact', argument: '[what to keep]', says: 'summarize the conversation' },
  { name: 'retry', says: 'run again from here' },
  { name: 'resume', says: 'resume the interrupted run' },
  { name: 'share', argument: '[html|markdown|bundle]', says: 'write this session to a file, without secrets' },
  { name: 'export', argument: '[html|markdown|bundle]', says: 'the same as /share' },
  { name: 'usage', says: 'show tokens and cost of this session and of the last days' },
  { name: 'login', argument: '[provider]', says: 'add a key for a provider' },
  { name: 'init', argument: '[wishes]', says: 'let the agent write AGENTS.md for this repository' },
  { name: 'config', says: 'show model, thinking, mode and theme, and where each comes from' },
  { name: 'theme', argument: '[theme]', says: 'choose the color theme' },
  { name: 'vim', says: 'turn vim keys on or off' },
  { name: 'details', says: 'show or fold reasoning and tool output' },
  { name: 'copy', says: 'copy the last answer' },
  { name: 'steer', says: 'let Enter steer a run, or queue' },
  { name: 'quit', says: 'leave' },
] as const satisfies readonly { name: string; argument?: string; says: string }[]

export type SlashName = (typeof slashTable)[number]['name']

export type SlashReading =
  /** Goes to the model, or to the session that knows the command. */
  { type: 'message' } | { type: 'command'; name: SlashName; words: string } | { type: 'unknown'; reason: string }

/** Classifies a typed message. `known` are the commands of the session. */
export function readSlash(text: string, known: readonly string[]): SlashReading {
  const [, name, words = ''] = /^\/([a-zA-Z][\w:.-]*)(?:\s+([\s\S]*))?$/.exec(text) ?? []
  if (name === undefined) return { type: 'message' }
  const own = slashTable.find((row) => row.name === name)
  if (own) return { type: 'command', name: own.name, words: words.trim() }
  if (known.includes(name)) return { type: 'message' }
  const suggestion = didYouMean(`/${name}`, [
    ...slashTable.map((row) => `/${row.name}`),
    ...known.map((each) => `/${each}`),
  ])
  return { type: 'unknown', reason: `There is no command /${name}.${suggestion} /help lists them.` }
}
