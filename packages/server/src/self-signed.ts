import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { isIP, isIPv4 } from 'node:net'

const lifeMs = 397 * 24 * 60 * 60_000

/** A P-256 key and a self-signed certificate for these names, both as PEM. */
export function makeCertificate(names: readonly string[], now: number): { cert: string; key: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const subject = sequence(set(sequence(objectId('550403'), der(0x0c, Buffer.from('tapetree')))))
  const serial = randomBytes(16)
  // A positive integer in its shortest encoding.
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40
  const content = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    ecdsaWithSha256,
    subject,
    sequence(time(now - clockSkewMs), time(now + lifeMs)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions(names))),
  )
  const signature = der(0x03, Buffer.from([0]), sign('sha256', content, privateKey))
  const base64 = sequence(content, ecdsaWithSha256, signature).toString('base64')
  const lines = base64.match(/.{1,64}/g) ?? []
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

/** Tolerates a clock that is a little behind. */
const clockSkewMs = 24 * 60 * 60_000

/** Subject names, server authentication, and no right to sign other certificates. */
function extensions(names: readonly string[]): Buffer[] {
  const alternatives = names.map((name) =>
    isIP(name) === 0 ? der(0x82, Buffer.from(name, 'ascii')) : der(0x87, addressBytes(name)),
  )
  const isCritical = der(0x01, Buffer.from([0xff]))
  const digitalSignature = der(0x03, Buffer.from([7, 0x80]))
  return [
    sequence(objectId('551d11'), der(0x04, sequence(...alternatives))),
    sequence(objectId('551d13'), isCritical, der(0x04, sequence())),
    sequence(objectId('551d0f'), isCritical, der(0x04, digitalSignature)),
    sequence(objectId('551d25'), der(0x04, sequence(objectId('2b06010505070301')))),
  ]
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail] = URL.parse(`http://[${address}]/`)?.hostname.slice(1, -1).split('::') ?? []
  const left = head.split(':').filter(Boolean)
  const right = (tail ?? '').split(':').filter(Boolean)
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0')
  return Buffer.from([...left, ...zeros, ...right].map((each) => each.padStart(4, '0')).join(''), 'hex')
}

/** DER: tag, length, content. */
function der(tag: number, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content)
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body])
  const digits = body.length.toString(16)
  const length = Buffer.from(digits.padStart(digits.length + (digits.length % 2), '0'), 'hex')
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, body])
}

function sequence(...content: Buffer[]): Buffer {
  return der(0x30, ...content)
}

function set(...content: Buffer[]): Buffer {
  return der(0x31, ...content)
}

function objectId(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'))
}

/** Two-digit years are valid until 2050. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replaceAll(/[-T:]|\.\d+/g, '')
  return Number(digits.slice(0, 4)) < 2050 ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits))
}

const ecdsaWithSha256 = sequence(objectId('2a8648ce3d040302'))
