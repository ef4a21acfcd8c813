import { resolve } from 'node:path'
import { findProgram, isProgram } from '../util/find-program.ts'
import { hashOf } from '../util/request-hash.ts'
import { ServerProblem } from './server-problem.ts'
import type { HttpSettings, McpServerSettings } from './server-settings.ts'

/** The settings of a server, resolved for this machine and folder. */
export type ResolvedServer = (
  | { type: 'stdio'; file: string; args: readonly string[]; env: Readonly<Record<string, string>>; cwd: string }
  | (Pick<HttpSettings, 'headers' | 'oauth'> & { type: 'http'; url: URL })
) & {
  /**
   * The hash of everything that decides what runs or which server is used: the program, its arguments and fixed
   * variables, the names of the others, or the address and the names of headers.
   */
  origin: string
}

export interface ServerPlace {
  cwd: string
  environment: Readonly<Record<string, string | undefined>>
}

export async function resolveServer(
  settings: McpServerSettings,
  { cwd, environment }: ServerPlace,
): Promise<ResolvedServer> {
  if (settings.type === 'http') {
    const { headers, oauth } = settings
    const url = new URL(settings.url)
    const origin = hashOf({ type: 'http', url: url.href, headers: Object.keys(headers).sort(), oauth: oauth ?? null })
    return { type: 'http', url, headers, oauth, origin }
  }
  const { command, args } = settings
  const env = serverEnvironment(environment, settings.env)
  const folder = resolve(cwd, settings.cwd ?? '.')
  const file = await programOf(command, { cwd: folder, path: env['PATH'] })
  if (file === undefined) throw new ServerProblem(`There is no program ${command}.`, { isFinal: true })
  const { pass, set } = settings.env
  const origin = hashOf({ type: 'stdio', file, args, pass: [...pass].sort(), set, cwd: settings.cwd ? folder : null })
  return { type: 'stdio', file, args, env, cwd: folder, origin }
}

/** Resolves a command to a file as the system would, so that the approved program is the one that is started. */
async function programOf(
  command: string,
  { cwd, path }: { cwd: string; path: string | undefined },
): Promise<string | undefined> {
  if (!command.includes('/')) return findProgram(command, path)
  const file = resolve(cwd, command)
  return (await isProgram(file)) ? file : undefined
}

/** Variables that programs may need and that reveal nothing. */
const harmless = `
  PATH HOME USER LOGNAME SHELL TERM TZ LANG LANGUAGE LC_ALL LC_CTYPE LC_MESSAGES LC_NUMERIC LC_TIME LC_COLLATE TMPDIR TMP TEMP
  XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
`
  .trim()
  .split(/\s+/)

/**
 * The environment of a server's program: variables known to be harmless, those that its settings name, and
 * fixed values. A key reaches it only if the user named it for this very server.
 */
function serverEnvironment(
  ours: Readonly<Record<string, string | undefined>>,
  { pass, set }: { pass: readonly string[]; set: Readonly<Record<string, string>> },
): Record<string, string> {
  const passed = [...harmless, ...pass].flatMap((name): [string, string][] => {
    const value = ours[name]
    return value === undefined ? [] : [[name, value]]
  })
  return { ...Object.fromEntries(passed), ...set }
}
