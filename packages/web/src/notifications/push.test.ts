import { afterAll, expect, test, vi } from 'vitest'

const endpoint = 'https://push.example/1'
const subscription = { toJSON: () => ({ endpoint, keys: { p256dh: 'key', auth: 'secret' } }) }
const registration = { pushManager: { getSubscription: async () => subscription } }
vi.stubGlobal('location', { href: 'http://127.0.0.1/', protocol: 'http:' })
vi.stubGlobal('isSecureContext', true)
vi.stubGlobal('navigator', { serviceWorker: { register: async () => undefined, ready: Promise.resolve(registration) } })
const { rest } = await import('../server.ts')
const { renewSubscription } = await import('./push.ts')
afterAll(() => void vi.unstubAllGlobals())

test('the server of a browser that is subscribed gets the subscription again', async () => {
  const subscribePush = vi.spyOn(rest, 'subscribePush').mockResolvedValue({} as never)
  expect(await renewSubscription()).toBe(true)
  expect(subscribePush).toHaveBeenCalledExactlyOnceWith({ endpoint, keys: { p256dh: 'key', auth: 'secret' } })
  subscribePush.mockRestore()
})
