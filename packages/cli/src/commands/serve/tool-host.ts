import type { HostMode } from '@tapetree/agent/tool-host'
import { realpath, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { flag, listOption, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { notify, type Io } from '../../command-line/io.ts'
import { KnownServers } from '../../host/known-servers.ts'
import { offerFolders } from '../../host/offer-folder.ts'
import { parseServerLink, requireSafe } from '../../host/pair.ts'
import { placesOf } from '../../host/places.ts'
import { serverFor } from '../../host/server-for.ts'
import { parseRule } from '../../print/run-options.ts'
import { harmlessLine } from '../../text/harmless.ts'

/** Offers folders of this machine to sessions that run on a server, until it is told to stop. */
export async function toolHost(invocation: Invocation, io: Io): Promise<ExitCode> {
  const given = textOption(invocation, 'connect')
  const link = given === undefined ? undefined : parseServerLink(given)
  if (!link) {
    throw usageFailure('tool-host needs the address of a server: --connect.', [
      'tapetree tool-host --connect https://tape.example --workspace app=.',
    ])
  }
  requireSafe(link, { allowInsecure: flag(invocation, 'allow-insecure') })
  const workspaces = await workspacesOf(invocation, io)
  const server = await serverFor({ link, servers: new KnownServers(placesOf(io)), invocation, io })
  const mode = textOption(invocation, 'permission-mode') as HostMode | undefined
  const name = textOption(invocation, 'name')
  const where = harmlessLine(server.url)
  const say = (text: string): void => notify(io.stderr, `${text}\n`)
  const { host, ended } = await offerFolders({
    server,
    io,
    workspaces,
    ...(mode !== undefined && { mode }),
    ...(name !== undefined && { name }),
    sharesFiles: !flag(invocation, 'keep-no-files'),
    rules: [
      ...listOption(invocation, 'allow').map((rule) => parseRule(rule, 'allow')),
      ...listOption(invocation, 'deny').map((rule) => parseRule(rule, 'deny')),
    ],
    signal: io.signal,
    onChange: (state) => say(state === 'connected' ? `Connected to ${where}.` : `Lost the connection to ${where}.`),
  })
  for (const { name: workspace, folder, mode: most } of host.hello.workspaces) {
    say(`Offers ${harmlessLine(folder)} as ${harmlessLine(workspace)}, in mode ${most} at most.`)
  }
  await ended
  return exitCodes.ok
}

async function workspacesOf(invocation: Invocation, { cwd }: Io): Promise<Record<string, string>> {
  const given = listOption(invocation, 'workspace')
  if (given.length === 0) {
    throw usageFailure('tool-host needs a folder to offer: --workspace name=folder.', [
      'tapetree tool-host --connect https://tape.example --workspace app=.',
    ])
  }
  const pairs = await Promise.all(
    given.map(async (text) => {
      const [, name = '', folder = ''] = /^([^=]{1,200})=(.+)$/.exec(text) ?? []
      if (name === '') {
        throw usageFailure(
          `--workspace must be a name and a folder, such as app=., not ${JSON.stringify(harmlessLine(text))}.`,
        )
      }
      const path = resolve(cwd, folder)
      const found = await stat(path).catch(() => undefined)
      if (!found?.isDirectory()) {
        throw new Failure(exitCodes.notFound, `There is no folder ${harmlessLine(folder)}.`, {
          type: 'folder-not-found',
        })
      }
      return [name, await realpath(path)] as const
    }),
  )
  return Object.fromEntries(pairs)
}
