import { createECDH, createPublicKey, verify } from 'node:crypto'
import { expect, test } from 'vitest'
import { createVapidKeys, encryptMessage, vapidAuthorization } from './web-push.ts'

const fromBase64 = (text: string): Buffer => Buffer.from(text, 'base64url')

test('a message is encrypted as in the example of RFC 8291', () => {
  const sender = createECDH('prime256v1')
  sender.setPrivateKey(fromBase64('yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw'))
  const keys = {
    p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
    auth: 'BTBZMqHH6r4Tts7J_aSIgg',
  }
  const salt = fromBase64('DGv6ra1nlYgDCS1FRnbzlw')
  const message = Buffer.from('When I grow up, I want to be a watermelon')
  expect(encryptMessage(message, keys, { sender, salt }).toString('base64url')).toBe(
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
  )
})

test.each([
  ['an empty key', '', 'wrong length'],
  ['a short key', 'BCVxsr7N', 'wrong length'],
  ['a point that is not on the curve', Buffer.alloc(65, 4).toString('base64url'), 'not valid for specified curve'],
])('%s is rejected', (_, p256dh, message) => {
  expect(() => encryptMessage(Buffer.from('x'), { p256dh, auth: 'BTBZMqHH6r4Tts7J_aSIgg' })).toThrow(message)
})

test('a server proves its identity with a token for the origin of the endpoint', () => {
  const keys = createVapidKeys()
  const now = Date.parse('2026-01-01T00:00:00Z')
  const subject = 'mailto:me@example.com'
  const header = vapidAuthorization('https://push.example.com/abc?d', { keys, subject, now })
  const [, head = '', body = '', signature = '', key = ''] =
    /^vapid t=([\w-]+)\.([\w-]+)\.([\w-]+), k=([\w-]+)$/.exec(header) ?? []
  expect(JSON.parse(fromBase64(head).toString())).toEqual({ typ: 'JWT', alg: 'ES256' })
  expect(JSON.parse(fromBase64(body).toString())).toEqual({
    aud: 'https://push.example.com',
    exp: now / 1000 + 12 * 60 * 60,
    sub: subject,
  })
  const point = fromBase64(key)
  expect([key, point.length, point[0]]).toEqual([keys.publicKey, 65, 4])
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  }
  const publicKey = createPublicKey({ format: 'jwk', key: jwk })
  const signed = Buffer.from(`${head}.${body}`)
  expect(verify('sha256', signed, { key: publicKey, dsaEncoding: 'ieee-p1363' }, fromBase64(signature))).toBe(true)
})
