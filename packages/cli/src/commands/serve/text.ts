import { renderUnicodeCompact } from 'uqr'
import type { Reach } from './options.ts'

export interface ServedAddress {
  url: string
  fingerprint: string | undefined
  link: string
  reach: Reach
  /** Only a person has a use for the code. */
  isTerminal: boolean
}

/** What a person has to know of a server that has just begun. */
export function serveText({ url, fingerprint, link, reach, isTerminal }: ServedAddress): string {
  return [
    `Serving at ${url}`,
    ...(fingerprint === undefined ? [] : [`Fingerprint ${fingerprint}`]),
    '',
    'This link lets one device in, once and within five minutes:',
    `  ${link}`,
    ...(isTerminal ? ['', renderUnicodeCompact(link)] : []),
    '',
    forPhones[reach],
    '',
  ].join('\n')
}

const forPhones: Record<Reach, string> = {
  'this-machine':
    'Only this machine can reach it. A phone needs a tunnel to this port (such as ssh -L or one that does TLS), or in a private\n' +
    'network: tapetree serve --host <address of this machine> --self-signed',
  network:
    'A phone in the same network opens the link. From elsewhere it needs a private network (VPN) or a tunnel to this port. A\n' +
    'certificate of our own making is not known to browsers: compare the fingerprint before you accept it.',
  'insecure-network':
    'There is no TLS here: put a proxy before it that does it, and give the phone the address of the proxy. Without one everyone\n' +
    'in the network can read the tokens.',
}
