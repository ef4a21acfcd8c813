import { defaultTenant, type Role, type RunningServer } from '@tapetree/server'
import { createInterface } from 'node:readline'
import { renderUnicodeCompact } from 'uqr'
import { notify, write, printJson, type Io } from '../../command-line/io.ts'

/** Who can reach the server, which decides what a phone still needs. */
export type Reach = 'this-machine' | 'network' | 'insecure-network' | 'proxy'

interface Announced {
  io: Io
  /** The role that links grant, unless the user chooses another. */
  role: Role
  reach: Reach
  asJson: boolean
}

/** Prints the address and the first pairing link, and another one each time the user presses Enter. */
export async function announce(server: RunningServer, { io, role, reach, asJson }: Announced): Promise<void> {
  const newLink = (granted: Role): string =>
    server.pairingLink({ tenant: defaultTenant, role: granted, name: 'paired device' })
  const { url: ownUrl, publicUrl, fingerprint } = server
  const url = publicUrl ?? ownUrl
  if (asJson) {
    return printJson(io, {
      url,
      pairing_link: newLink(role),
      role,
      ...(publicUrl !== undefined && { listening: ownUrl }),
      ...(fingerprint !== undefined && { fingerprint }),
      process: process.pid,
    })
  }
  const isTerminal = io.stdout.isTTY === true
  const linkText = (granted: Role): string => pairingText({ url, link: newLink(granted), role: granted, isTerminal })
  await write(io.stdout, addressText(server, reach))
  await write(io.stdout, `\n${linkText(role)}\n${forPhones[reach]}\n`)
  if (io.stdin.isTTY !== true) return
  await write(io.stderr, 'Press Enter for another link, Ctrl-C to stop the server.\n')
  const lines = createInterface({ input: io.stdin, terminal: false })
  const next = linkDialog(role)
  lines.on('line', (line) => {
    const step = next(line)
    if (step.type === 'ask') notify(io.stderr, step.question)
    else notify(io.stdout, `\n${linkText(step.role)}`)
  })
  io.signal.addEventListener('abort', () => lines.close(), { once: true })
}

const ladder: readonly Role[] = ['view', 'queue', 'approve', 'drive']

/** Enter asks for the role of the next link; the line after it answers. A role may be shortened to its start. */
function linkDialog(usual: Role): (line: string) => { type: 'ask'; question: string } | { type: 'link'; role: Role } {
  const question = `Role of the new device: ${ladder.join(', ')} (Enter: ${usual})? `
  let isAsked = false
  return (line) => {
    if (!isAsked) {
      isAsked = true
      return { type: 'ask', question }
    }
    const typed = line.trim().toLowerCase()
    const role = typed === '' ? usual : ladder.find((each) => each.startsWith(typed))
    if (role === undefined) return { type: 'ask', question }
    isAsked = false
    return { type: 'link', role }
  }
}

type ServerAddress = Pick<RunningServer, 'url' | 'publicUrl' | 'alsoAt' | 'fingerprint' | 'renewed'>

/** Where the server can be reached. */
export function addressText({ url, publicUrl, alsoAt, fingerprint, renewed }: ServerAddress, reach: Reach): string {
  const others = reach === 'network' ? alsoAt : []
  return [
    ...(publicUrl === undefined
      ? [`Serving at ${url}`]
      : [`Serving at ${publicUrl}`, `Listening for the proxy at ${url}`]),
    ...(others.length > 0 ? [`Also at ${others.join(', ')}`] : []),
    ...(fingerprint === undefined ? [] : [`Fingerprint ${fingerprint}`, unknownCertificate]),
    ...(renewed === undefined ? [] : [renewedText[renewed]]),
    '',
  ].join('\n')
}

const unknownCertificate =
  'Browsers do not know a self-signed certificate: compare the fingerprint before you accept it.'

const renewedText: Record<NonNullable<RunningServer['renewed']>, string> = {
  'new-name':
    'This machine has a new name or address, so the server made a new certificate. Browsers warn again, and terminals ' +
    'that were paired\nmust be paired again.',
  expires:
    'The certificate was about to expire, so the server made a new one. Browsers warn again, and terminals that were ' +
    'paired must be\npaired again.',
}

interface PairingLink {
  url: string
  link: string
  role: Role
  /** Only a person can use the QR code. */
  isTerminal: boolean
}

function pairingText({ url, link, role, isTerminal }: PairingLink): string {
  const code = new URLSearchParams(new URL(link).hash.slice(1)).get('pair')
  return [
    `This link pairs one device with the role ${role} and expires after five minutes:`,
    `  ${link}`,
    ...(isTerminal ? ['', renderUnicodeCompact(link), ''] : []),
    `Or open ${url} and type the code ${code}`,
    '',
  ].join('\n')
}

const forPhones: Record<Reach, string> = {
  'this-machine':
    'Only this machine can reach the server. A phone needs a tunnel to this port (such as ssh -L, or one with TLS). ' +
    'In a private\n' +
    'network, use: tapetree serve --host 0.0.0.0 --self-signed',
  network:
    'On a phone in the same network, open the link. From elsewhere the phone needs a private network (VPN) or a ' +
    'tunnel to this\n' +
    'port.',
  'insecure-network':
    'TLS is off. Put a TLS proxy in front of the server and name its address with --public-url. Otherwise ' +
    'anyone in the\n' +
    'network can read the tokens.',
  proxy: 'Every device that can reach the proxy can open the link.',
}
