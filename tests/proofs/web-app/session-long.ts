import {
  answer,
  inspect,
  newSession,
  openPaired,
  said,
  send,
  untilIdle,
  type SessionJourney,
} from './session-journey.ts'

/** Written before the server starts; each message begins with its number. */
export interface LongSession {
  id: string
  messages: number
}

interface Scrolled {
  scrollTop: number
  scrollHeight: number
}

/** A very long session opens at its end and shows any place of it. */
export async function longSessionJourney(journey: SessionJourney, { id, messages }: LongSession): Promise<void> {
  const { base, complain, say } = journey
  const view = await openPaired(journey, { width: 1440, scheme: 'light' })
  const { page } = view
  await page.goto(`${base}#/sessions/${id}`)
  await page.getByText(`${messages - 1}: `).waitFor()
  const transcript = page.locator('.transcript')
  const started = performance.now()
  await transcript.evaluate<void, Scrolled>((each) => void (each.scrollTop = each.scrollHeight / 2))
  const isMiddle = (each: number): boolean => Math.abs(each - messages / 2) < messages / 8
  let frames = 0
  while (!(await page.evaluate<number[]>(numbersInView)).some(isMiddle)) {
    if (++frames > 600) return complain(`the middle of ${messages} messages shows nothing after ${frames} frames`)
    await page.evaluate('new Promise(requestAnimationFrame)')
  }
  say(`jumped to the middle of ${messages} messages in ${Math.round(performance.now() - started)} ms`)
  await inspect(journey, view, 'long-middle')
  // In both directions, every message follows the one before it.
  for (const step of [-600, 600]) {
    for (let count = 0; count < 12; count++) {
      await transcript.evaluate<void, number, Scrolled>((each, by) => void (each.scrollTop += by), step)
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
      const shown = await page.evaluate<number[]>(numbersInView)
      if (shown.some((each, index) => index > 0 && each !== (shown[index - 1] ?? 0) + 1))
        complain(`scrolling by ${step} shows the messages ${shown.join()}`)
    }
  }
  await transcript.evaluate<void, Scrolled>((each) => void (each.scrollTop = 0))
  await page.getByText(/^0: Some words/).waitFor()
  await page.getByRole('button', { name: 'Jump to newest' }).click()
  await page.getByText(`${messages - 1}: `).waitFor()
  // The user goes back to the end before the place that they had asked for is loaded.
  const asked = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  await page.route('**/entries?**', async (route) => {
    asked.resolve()
    await released.promise
    await route.continue()
  })
  const loaded = page.waitForResponse('**/entries?**')
  await transcript.evaluate<void, Scrolled>((each) => void (each.scrollTop = each.scrollHeight / 3))
  await asked.promise
  await page.getByRole('button', { name: 'Jump to newest' }).click()
  await page.getByText(`${messages - 1}: `).waitFor()
  released.resolve()
  await (await loaded).finished()
  await page.unroute('**/entries?**')
  for (let frame = 0; frame < 10; frame++) await page.evaluate('new Promise(requestAnimationFrame)')
  const shown = await page.evaluate<number[]>(numbersInView)
  if (!shown.includes(messages - 1))
    complain(`what was loaded late took the user from the end to ${shown[0]} of ${messages} messages`)
}

/** An answer that streams draws only its own row. */
export async function streamingJourney(journey: SessionJourney): Promise<void> {
  const { home, complain } = journey
  const view = await openPaired(journey, { width: 1440, scheme: 'dark' })
  const { page } = view
  home.provider.script(answer(said('First answer.')))
  await newSession(journey, page)
  await send(page, 'Say something.')
  await page.getByText('First answer.').waitFor()
  await untilIdle(page)
  const words = Array.from({ length: 60 }, (_, index) => `word ${index} `)
  home.provider.script({
    type: 'answer',
    content: [said('Streaming '), { type: 'wait', gate: 'stream' }, said(...words)],
  })
  await send(page, 'Say much.')
  await page.getByText('Streaming').waitFor()
  await page.evaluate(watchRows)
  home.provider.release('stream')
  await page.getByText('word 59').waitFor()
  const { watched, touched, own } = await page.evaluate<Record<string, number>>('globalThis.rowChanges')
  if (!watched || !own) complain(`${watched} rows were watched, and ${own} changes of the answer were seen`)
  if (touched !== 0) complain(`an answer that streams changed ${touched} other rows`)
  await untilIdle(page)
}

/** Counts changes inside of rows that were there before, and all other changes. */
const watchRows = `{
  const all = [...document.querySelectorAll('.row > *')]
  all.pop() // This one streams.
  const counts = (globalThis.rowChanges = { watched: all.length, touched: 0, own: 0 })
  new MutationObserver((changes) => {
    for (const { target } of changes) {
      if (all.some((row) => row.contains(target))) counts.touched++
      else counts.own++
    }
  }).observe(document.querySelector('.rows'), { subtree: true, childList: true, characterData: true })
}`

/** The numbers of the messages in view. */
const numbersInView = `[...document.querySelectorAll('.row')].filter((row) => {
  const { top, bottom } = row.getBoundingClientRect()
  return bottom > 0 && top < innerHeight
}).map((row) => Number(/^\\d+(?=: )/.exec(row.innerText)?.[0])).filter((each) => !Number.isNaN(each))`
