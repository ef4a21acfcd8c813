/**
 * Scripts for the pages that are measured, as text: this program has no types of the browser. They run before the scripts of the page.
 * All times are in milliseconds since the navigation.
 */
export const instruments = `globalThis.bench = (() => {
  const measured = { frames: 0, longestTask: 0, keys: [] }
  requestAnimationFrame(function count() {
    measured.frames++
    requestAnimationFrame(count)
  })
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) measured.longestTask = Math.max(measured.longestTask, duration)
  }).observe({ type: 'longtask' })
  // From the key that the browser got to the frame that shows it. A message comes after the frame is painted.
  // A field is emptied with the key Delete, which changes nothing if it is empty.
  const pressed = []
  addEventListener('keydown', ({ key, timeStamp }) => key.length === 1 && pressed.push(timeStamp), true)
  addEventListener('input', ({ inputType }) => {
    if (inputType !== 'insertText') return
    const at = pressed.shift()
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel()
      port1.onmessage = () => measured.keys.push(performance.now() - at)
      port2.postMessage(0)
    })
  }, true)
  const until = (isTrue, limitMs) =>
    new Promise((resolve) => {
      const begun = performance.now()
      const look = () => {
        if (isTrue() || performance.now() - begun > limitMs) resolve(performance.now())
        else requestAnimationFrame(look)
      }
      look()
    })
  const numbersShown = () => {
    const place = document.querySelector('.transcript')?.getBoundingClientRect()
    if (!place) return []
    return [...document.querySelectorAll('.transcript .row')].flatMap((row) => {
      const { top, bottom } = row.getBoundingClientRect()
      const number = /(\\d+): /.exec(row.textContent)?.[1]
      return number === undefined || bottom <= place.top || top >= place.bottom ? [] : [Number(number)]
    })
  }
  const showsBetween = (first, last) => numbersShown().some((number) => number >= first && number <= last)
  const composer = () => document.querySelector('textarea[aria-label="Message"]:enabled')
  return {
    reset: () => Object.assign(measured, { frames: 0, longestTask: 0, keys: [] }),
    read: () => ({ ...measured }),
    /** When the last entry can be read and a message can be written. */
    usable: (entries, limitMs) => until(() => composer() && showsBetween(entries - 2, entries - 1), limitMs),
    keysShown: (count, limitMs) => until(() => measured.keys.length >= count, limitMs),
    composerShown: () => until(composer, 5000),
    open: async (fragment, entries, limitMs) => {
      const begun = performance.now()
      location.hash = fragment
      return (await until(() => composer() && showsBetween(entries - 2, entries - 1), limitMs)) - begun
    },
    /** As with the scroll bar. Until text from around the middle can be read. */
    jumpToMiddle: async (entries, limitMs) => {
      const begun = performance.now()
      const place = document.querySelector('.transcript')
      place.scrollTop = place.scrollHeight / 2
      return (await until(() => showsBetween(entries * 0.4, entries * 0.6), limitMs)) - begun
    },
  }
})()`
