import {
  createCipheriv,
  createECDH,
  createPrivateKey,
  generateKeyPairSync,
  hkdfSync,
  randomBytes,
  sign,
  type ECDH,
} from 'node:crypto'

/** Keys that identify this server to push services (RFC 8292), in base64url. */
export interface VapidKeys {
  /** The uncompressed point. */
  publicKey: string
  privateKey: string
}

/** Keys of a browser's subscription, in base64url. */
export interface SubscriptionKeys {
  /** The uncompressed point, 65 bytes. */
  p256dh: string
  /** 16 bytes. */
  auth: string
}

export function createVapidKeys(): VapidKeys {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const { x = '', y = '', d = '' } = privateKey.export({ format: 'jwk' })
  const point = Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')])
  return { publicKey: point.toString('base64url'), privateKey: d }
}

const tokenSeconds = 12 * 60 * 60

/** The header `Authorization` of a message to an endpoint. `subject` tells the service whom to contact. */
export function vapidAuthorization(
  endpoint: string,
  { keys, subject, now }: { keys: VapidKeys; subject: string; now: number },
): string {
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const expires = Math.floor(now / 1000) + tokenSeconds
  const claims = { aud: new URL(endpoint).origin, exp: expires, sub: subject }
  const signed = `${encode({ typ: 'JWT', alg: 'ES256' })}.${encode(claims)}`
  const point = Buffer.from(keys.publicKey, 'base64url')
  const key = createPrivateKey({
    format: 'jwk',
    key: {
      kty: 'EC',
      crv: 'P-256',
      x: point.subarray(1, 33).toString('base64url'),
      y: point.subarray(33).toString('base64url'),
      d: keys.privateKey,
    },
  })
  const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
  return `vapid t=${signed}.${signature.toString('base64url')}, k=${keys.publicKey}`
}

/** One record is enough for our messages. */
const recordBytes = 4096

interface Ephemeral {
  sender: ECDH
  salt: Buffer
}

/**
 * Encrypts a message for one subscription (RFC 8291, `aes128gcm`). Throws if its keys are not valid. The keys of the
 * message are new each time; only tests pass them.
 */
export function encryptMessage(message: Buffer, keys: SubscriptionKeys, ephemeral: Ephemeral = newKeys()): Buffer {
  const receiver = Buffer.from(keys.p256dh, 'base64url')
  const auth = Buffer.from(keys.auth, 'base64url')
  if (receiver.length !== 65 || auth.length !== 16) throw new Error('The keys of the subscription have a wrong length.')
  const { sender, salt } = ephemeral
  const ours = sender.getPublicKey()
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), receiver, ours])
  const secret = Buffer.from(hkdfSync('sha256', sender.computeSecret(receiver), auth, info, 32))
  const key = Buffer.from(hkdfSync('sha256', secret, salt, 'Content-Encoding: aes128gcm\0', 16))
  const nonce = Buffer.from(hkdfSync('sha256', secret, salt, 'Content-Encoding: nonce\0', 12))
  const cipher = createCipheriv('aes-128-gcm', key, nonce)
  // The delimiter of the last record.
  const body = Buffer.concat([
    cipher.update(message),
    cipher.update(Buffer.from([2])),
    cipher.final(),
    cipher.getAuthTag(),
  ])
  const size = Buffer.alloc(4)
  size.writeUInt32BE(recordBytes)
  return Buffer.concat([salt, size, Buffer.from([ours.length]), ours, body])
}

function newKeys(): Ephemeral {
  const sender = createECDH('prime256v1')
  sender.generateKeys()
  return { sender, salt: randomBytes(16) }
}
