import type { Page } from 'playwright-core'

/**
 * Runs in the page before its own scripts, as text. Records each element and attribute that hostile text could have made, each call of
 * a dialog, and each violation of the policy, at the moment it happens.
 */
const guardScript = `(() => {
  const reports = (globalThis.xssReports = [])
  const report = (sentence) => void (reports.length < 50 && reports.push(sentence))
  for (const name of ['alert', 'confirm', 'prompt', 'print', 'open'])
    globalThis[name] = () => report('a script called ' + name)
  document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
    report('the policy stopped ' + violatedDirective + ' ' + blockedURI + ' ' + sample))

  // So that text in flight can be fed to the page.
  globalThis.xssSockets = []
  globalThis.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given)
      xssSockets.push(this)
    }
  }

  const never = new Set(('script style iframe frame frameset object embed applet base meta audio video source track marquee portal ' +
    'template slot plaintext math foreignobject animate animatemotion animatetransform set handler feimage').split(' '))
  // What Markdown may become. Everything else in it is text.
  const inMarkdown = new Set(('div p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code span a strong em del br hr table thead tbody tr th td ' +
    'button input img figure figcaption mark small').split(' '))
  const addresses = new Set(['href', 'xlink:href', 'src', 'srcset', 'action', 'formaction', 'data', 'poster', 'ping', 'background', 'srcdoc',
    'manifest', 'cite', 'longdesc', 'imagesrcset'])
  const isOwn = (url) => url.origin === location.origin && !url.href.includes('xss-probe')
  const checkAddress = (element, name, value) => {
    const tag = element.localName
    const url = URL.parse(value, location.href)
    if (tag === 'a' && name === 'href') {
      const isPage = url && ['https:', 'http:', 'mailto:'].includes(url.protocol)
      const isHostile = element.closest('.markdown') !== null
      if (!isPage) return report('a link leads to ' + value)
      if (isHostile && element.getAttribute('target') !== '_blank') return report('a link of a text opens in this page: ' + value)
      if (isHostile && !/noopener/.test(element.getAttribute('rel') ?? '')) return report('a link of a text can reach this page: ' + value)
      return
    }
    if (tag === 'img' && name === 'src') {
      if (url?.protocol === 'blob:' || /^data:image\\/(png|jpeg|gif|webp);base64,/.test(value) || (url && isOwn(url))) return
      return report('an image is loaded from ' + value)
    }
    if ((tag === 'link' || tag === 'script') && element.parentElement === document.head && url && isOwn(url)) return
    if (element.namespaceURI.endsWith('/svg') && value.startsWith('#')) return
    report('<' + tag + ' ' + name + '=' + value + '>')
  }
  const checkAttribute = (element, { name, value }) => {
    const lower = name.toLowerCase()
    if (lower.startsWith('on')) report('an element has the handler ' + lower)
    else if (addresses.has(lower)) checkAddress(element, lower, value)
    else if (lower === 'style' && /url\\(|expression|@import/i.test(value)) report('a style loads something: ' + value)
    else if ((lower === 'id' || lower === 'name') && element.closest('.markdown')) report('a text sets ' + lower + ' to ' + value)
  }
  const check = (element) => {
    const tag = element.localName.toLowerCase()
    const isHead = element.parentElement === document.head
    if (never.has(tag) && !isHead) report('there is an element ' + tag)
    if (tag === 'form' && element.hasAttribute('action')) report('a form has an action')
    if (!inMarkdown.has(tag) && element.parentElement?.closest('.markdown')) report('a text made an element ' + tag)
    for (const attribute of element.attributes) checkAttribute(element, attribute)
  }
  new MutationObserver((changes) => {
    for (const { type, target, attributeName, addedNodes } of changes) {
      if (type === 'attributes') {
        const value = target.getAttribute(attributeName)
        if (value !== null) checkAttribute(target, { name: attributeName, value })
      }
      for (const node of addedNodes) {
        if (node.nodeType !== 1) continue
        check(node)
        for (const inner of node.querySelectorAll('*')) check(inner)
      }
    }
  }).observe(document, { subtree: true, childList: true, attributes: true })
})()`

/** Watches one page from outside: requests, dialogs, navigations and windows; and from inside, by the script above. */
export class PageGuard {
  readonly #page: Page
  readonly #seen: string[] = []

  private constructor(page: Page) {
    this.#page = page
  }

  /** `origin` is the only one that the page may ask. */
  static async on(page: Page, origin: string): Promise<PageGuard> {
    const guard = new PageGuard(page)
    const see = (sentence: string): void => void guard.#seen.push(sentence)
    page.on('dialog', (dialog) => {
      see(`a dialog opened: ${dialog.message()}`)
      void dialog.dismiss()
    })
    page.on('popup', (popup) => see(`a window opened: ${popup.url()}`))
    page.on('pageerror', (error) => see(`the page failed: ${error.message}`))
    page.on('request', (request) => {
      const url = request.url()
      if (url.startsWith('about:') || url.startsWith('blob:') || url.startsWith('data:image/')) return
      const asked = new URL(url)
      // A comparison asks for the diff of one file by its name, which is a payload.
      const isNamed = /^\/api\/sessions\/[\w-]+\/compare$/.test(asked.pathname)
      if (asked.origin !== origin || (url.includes('xss-probe') && !isNamed)) see(`the page asked ${url}`)
    })
    page.on('websocket', (socket) => {
      if (new URL(socket.url()).host !== new URL(origin).host) see(`the page opened a socket to ${socket.url()}`)
    })
    page.on('framenavigated', (frame) => {
      const url = frame.url()
      const isOwn = url.startsWith('about:') || new URL(url).origin === origin
      if (frame !== page.mainFrame() || !isOwn) see(`a frame went to ${url}`)
    })
    await page.addInitScript(guardScript)
    return guard
  }

  /** What happened since the last call. Waits until what was drawn could have had an effect. */
  async take(): Promise<string[]> {
    const inside = await this.#page.evaluate<string[]>(
      `new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(xssReports.splice(0)), 0)))`,
    )
    return [...this.#seen.splice(0), ...inside]
  }
}
