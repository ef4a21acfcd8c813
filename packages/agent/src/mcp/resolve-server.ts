import { resolve } from 'node:path'
import { hashOf } from '../util/request-hash.ts'
import { findProgram } from './find-program.ts'
import { serverEnvironment } from './server-environment.ts'
import { ServerProblem } from './server-problem.ts'
import type { HttpSettings, McpServerSettings } from './server-settings.ts'

/** What settings mean on this machine, in this folder. */
export type ResolvedServer = (
  | { type: 'stdio'; file: string; args: readonly string[]; env: Readonly<Record<string, string>>; cwd: string }
  | (Pick<HttpSettings, 'headers' | 'oauth'> & { type: 'http'; url: URL })
) & {
  /**
   * The hash of everything that decides what is run or whom we speak to: the program, its arguments and fixed variables, the names
   * of the others, or the address and the names of headers.
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
  const file = await findProgram(command, { cwd: folder, path: env['PATH'] })
  if (file === undefined) throw new ServerProblem(`There is no program ${command}.`, { isFinal: true })
  const { pass, set } = settings.env
  const origin = hashOf({ type: 'stdio', file, args, pass: [...pass].sort(), set, cwd: settings.cwd ? folder : null })
  return { type: 'stdio', file, args, env, cwd: folder, origin }
}
