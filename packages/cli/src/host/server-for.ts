import { textOption, type Invocation } from '../command-line/command.ts'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import type { Io } from '../command-line/io.ts'
import { harmlessLine } from '../text/harmless.ts'
import type { KnownServer, KnownServers } from './known-servers.ts'
import { pair, type ServerLink } from './pair.ts'

export interface WantedServer {
  link: ServerLink
  servers: KnownServers
  /** With the option `token`. */
  invocation: Invocation
  io: Pick<Io, 'env'>
}

/** A pairing code takes precedence over a token, and a given token over a remembered one. */
export async function serverFor({ link, servers, invocation, io }: WantedServer): Promise<KnownServer> {
  if (link.code !== undefined) {
    const paired = await pair(link)
    await servers.remember(paired)
    return paired
  }
  const known = await servers.find(link.url)
  const token = textOption(invocation, 'token') ?? io.env['TAPETREE_TOKEN']
  if (token !== undefined && token !== '') return { ...known, url: link.url, token, pairedAt: '' }
  if (known) return known
  throw new Failure(exitCodes.noModel, `This device is not paired with ${harmlessLine(link.url)}.`, {
    type: 'not-paired',
    why: 'Use the pairing link that the server prints, or one of its tokens.',
    next: [
      `tapetree attach '${harmlessLine(link.url)}/#pair=<code>'`,
      `tapetree attach ${harmlessLine(link.url)} --token <token>`,
    ],
  })
}
