import { useEffect, useState, type ReactNode } from 'react'
import { isUnauthorized, pair, previewPairing, rights, rolesWithin, sentenceOf, type Role } from './server.ts'

interface PairScreenProps {
  /** From the link. */
  code: string | undefined
  notice: string | undefined
  /** The role that this device has now. */
  replaces: Role | undefined
  onDone: () => void
}

/** Shows what a code grants before it is used. */
export function PairScreen({ code: given, notice, replaces, onDone }: PairScreenProps): ReactNode {
  const [problem, setProblem] = useState(notice)
  const [typed, setTyped] = useState('')
  const [offer, setOffer] = useState<{ code: string; role: Role }>()
  const [chosen, setChosen] = useState<Role>('view')
  const [name, setName] = useState(deviceName)
  const [isBusy, setBusy] = useState(false)

  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true)
    setProblem(undefined)
    try {
      await work()
    } catch (error) {
      setProblem(isUnauthorized(error) ? deadCode : sentenceOf(error))
      if (isUnauthorized(error)) setOffer(undefined)
    } finally {
      setBusy(false)
    }
  }
  const preview = (code: string): Promise<void> =>
    attempt(async () => {
      const role = await previewPairing(code)
      setOffer({ code, role })
      setChosen(role)
    })
  useEffect(() => {
    if (given !== undefined) void preview(given)
    // Only when another link is opened.
  }, [given])

  return (
    <main className="narrow">
      <h1 className="brand">
        <img src="./icon.svg" alt="" width="28" height="28" /> tapetree
      </h1>
      <h2>Pair this device</h2>
      {problem !== undefined && (
        <p id="notice" className="notice failed" role="alert">
          {problem}
        </p>
      )}
      {offer ? (
        <form
          id="grant-form"
          onSubmit={(event) => {
            event.preventDefault()
            void attempt(async () => {
              await pair({ code: offer.code, role: chosen, name })
              onDone()
            })
          }}
        >
          {replaces && (
            <p>This device is already paired with the role {rights[replaces].name}. Pairing again replaces that.</p>
          )}
          <fieldset id="roles">
            <legend>What may this device do?</legend>
            {rolesWithin(offer.role).map((role) => (
              <label key={role} className="choice">
                <input
                  type="radio"
                  name="role"
                  value={role}
                  checked={role === chosen}
                  onChange={() => setChosen(role)}
                />
                <span>
                  {rights[role].name}
                  {role === offer.role && ' (as the link grants)'}
                  <small>{rights[role].meaning}</small>
                </span>
              </label>
            ))}
          </fieldset>
          <label className="field">
            Name of this device
            <input required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
          </label>
          <div className="buttons">
            <button disabled={isBusy}>Pair this device</button>
            <button type="button" className="quiet" onClick={() => (replaces ? onDone() : setOffer(undefined))}>
              Cancel
            </button>
          </div>
        </form>
      ) : (
        <form
          id="code-form"
          onSubmit={(event) => {
            event.preventDefault()
            void preview(typed)
          }}
        >
          <p>
            The computer that runs <code>tapetree serve</code> shows a link, a QR code and a pairing code. Open the link
            on this device, or type the code here. It works once, for five minutes. For a new one, press Enter in that
            terminal.
          </p>
          <label className="field">
            Pairing code
            <input
              required
              maxLength={200}
              autoComplete="off"
              autoCapitalize="characters"
              spellCheck={false}
              placeholder="XXXX-XXXX-XXXX-XXXX"
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
            />
          </label>
          <div className="buttons">
            <button disabled={isBusy}>Continue</button>
            {replaces && (
              <button type="button" className="quiet" onClick={onDone}>
                Cancel
              </button>
            )}
          </div>
        </form>
      )}
    </main>
  )
}

const deadCode =
  'This pairing code has expired, was already used, or has a typing mistake. A code works once, for five minutes. ' +
  'Press Enter in the terminal of tapetree serve for a new one.'

function deviceName(): string {
  const system = ['iPhone', 'iPad', 'Android', 'Mac', 'Windows', 'Linux'].find((each) =>
    navigator.userAgent.includes(each),
  )
  return `browser${system === undefined ? '' : ` on ${system}`}`
}
