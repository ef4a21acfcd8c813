import { isAbsolute, resolve } from 'node:path'
import { sha256Of } from './project.ts'
import type { McpServerSettings } from '../mcp/server-settings.ts'
import type { CheckedSettings } from './schema.ts'

/** Something that a project would have us start, connect to or load. */
export interface ProjectCommand {
  /** `MCP server github`, `hook toolCall 1`. */
  name: string
  /** What it comes to, for a person who decides by it: the whole command and all of its words. */
  text: string
  /** Of all that decides what happens. */
  sha256: string
  /** The command line of a hook, as the settings have it. */
  command?: string
  /** Words that may name files of the repository. */
  words: string[]
}

export function projectCommands(settings: CheckedSettings, root: string): ProjectCommand[] {
  const servers = Object.entries(settings.mcpServers ?? {}).map(([name, server]) => {
    const { text, words } = describeServer(server, root)
    return { name: `MCP server ${name}`, text, words, sha256: mcpServerHash(server, root) }
  })
  const hooks = Object.entries(settings.hooks ?? {}).flatMap(([event, list]) =>
    (list ?? []).map(({ matcher, command, timeoutMs }, index) => ({
      name: `hook ${event} ${index + 1}`,
      text: `${command}${matcher === undefined ? '' : ` (for ${matcher})`}`,
      command,
      words: shellWords(command),
      sha256: sha256Of(JSON.stringify([event, matcher ?? null, command, timeoutMs ?? null])),
    })),
  )
  const { shellPrefix } = settings
  const prefix =
    shellPrefix === undefined
      ? []
      : [{ name: 'shell prefix', text: shellPrefix, words: shellWords(shellPrefix), sha256: sha256Of(shellPrefix) }]
  return [...servers, ...hooks, ...prefix]
}

/** The same for the same command with the same words, variables and folder, in whatever order the names stand. */
function mcpServerHash(server: McpServerSettings, root: string): string {
  if (server.type === 'http')
    return sha256Of(JSON.stringify(['http', server.url, sorted(server.headers), server.oauth]))
  const { command, args, env, cwd = '.' } = server
  const folder = resolve(root, cwd)
  const variables = [[...env.pass].sort(), sorted(env.set)]
  return sha256Of(JSON.stringify(['stdio', resolveCommand(command, folder), args, variables, folder]))
}

function sorted(values: Record<string, string>): [string, string][] {
  return Object.entries(values).sort(([left], [right]) => (left < right ? -1 : 1))
}

/** A command with a slash is a file, found from its folder; any other is looked for on the path when it is started. */
function resolveCommand(command: string, folder: string): string {
  return command.includes('/') && !isAbsolute(command) ? resolve(folder, command) : command
}

function describeServer(server: McpServerSettings, root: string): { text: string; words: string[] } {
  if (server.type === 'http') {
    return { text: `${server.url}${inBrackets('headers', Object.keys(server.headers))}`, words: [] }
  }
  const { command, args, env, cwd } = server
  const call = [command, ...args]
  const place = cwd === undefined ? '' : ` (in ${quoted(cwd)})`
  const set = sorted(env.set).map(([name, value]) => `${name}=${quoted(value)}`)
  return {
    text: `${call.map(quoted).join(' ')}${place}${inBrackets('sets', set)}${inBrackets('is given', env.pass)}`,
    words: [...call, ...args.flatMap(shellWords), ...call.map((word) => resolve(root, cwd ?? '.', word))],
  }
}

function inBrackets(word: string, names: readonly string[]): string {
  return names.length === 0 ? '' : ` (${word} ${names.join(', ')})`
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}

/** Rough on purpose: each part that might be the name of a file. */
function shellWords(text: string): string[] {
  return text.split(/[\s'"`;|&()<>=]+/).filter(Boolean)
}
