import { describe, expect, test } from 'vitest'
import type { BankLink, TransactionPage } from '../../../../application/ports/bank-link.ts'
import { ProviderRefused } from '../../../../application/ports/provider.ts'

/** What every bank link holds to. @param publicToken makes one of an item that has transactions. */
export function describeBankLink(
  name: string,
  open: () => { readonly link: BankLink; readonly publicToken: () => string },
): void {
  describe(`a bank link: ${name}`, () => {
    const asked = { userId: 'u'.repeat(24), clientName: 'Rosen Masonry & Sons of Providence', token: null }
    const linked = async () => {
      const { link, publicToken } = open()
      return { link, ...(await link.exchange(publicToken(), 'owner')) }
    }

    test('opens its widget for a new item, and for one that is there', async () => {
      const { link, token } = await linked()
      for (const of of [null, token]) {
        expect(await link.createLinkToken({ ...asked, token: of })).toEqual({
          linkToken: expect.stringMatching(/^\S+$/),
        })
      }
    })

    test('makes another item of another public token', async () => {
      const [one, other] = [await linked(), await linked()]
      expect(one.itemId).not.toBe(other.itemId)
      expect(one.token).not.toBe(other.token)
    })

    test('tells of the accounts of an item, their balances and their numbers', async () => {
      const { link, token } = await linked()
      const { institutionName, accounts } = await link.accounts(token)
      expect(institutionName).toMatch(/Bank/)
      expect(await link.accounts(token)).toEqual({ institutionName, accounts })
      const debitable = accounts.filter(({ type }) => type !== 'other')
      expect(debitable.map(({ type }) => type)).toEqual(['checking', 'savings'])

      const balances = await link.balances(token)
      expect(balances.map(({ accountId }) => accountId)).toEqual(accounts.map(({ accountId }) => accountId))
      for (const { currentCents, availableCents, currency } of balances) {
        expect([currentCents, availableCents].every((cents) => cents === null || Number.isInteger(cents)))
        expect(currency).toBe('usd')
      }

      for (const { accountId, mask, type } of debitable) {
        expect(await link.numbers(token, accountId)).toEqual({
          routingNumber: expect.stringMatching(/^\d{9}$/),
          accountNumber: expect.stringMatching(new RegExp(`^\\d{1,13}${mask}$`)),
          accountType: type,
          unverifiedReason: null,
        })
      }
      expect(await link.numbers(token, 'nobodys')).toBeNull()
    })

    test('tells of transactions part by part, and of nothing twice', async () => {
      const { link, token } = await linked()
      const parts: TransactionPage[] = []
      do {
        const part = await link.transactions(token, parts.at(-1)?.cursor ?? null)
        if (part === 'changed_meanwhile') throw new Error('Nothing changed')
        parts.push(part)
      } while (parts.at(-1)!.hasMore)
      const all = parts.flatMap(({ changed }) => changed)
      expect(all.length).toBeGreaterThan(1)
      expect(new Set(all.map(({ providerId }) => providerId)).size).toBe(all.length)
      const accounts = (await link.accounts(token)).accounts.map(({ accountId }) => accountId)
      for (const { accountId, date, outCents } of all) {
        expect(accounts).toContain(accountId)
        expect(date).toMatch(/^\d{4}-\d{2}-\d{2}$/)
        expect(Number.isInteger(outCents)).toBe(true)
      }
      const { cursor } = parts.at(-1)!
      expect(await link.transactions(token, cursor)).toEqual({
        changed: [],
        removed: [],
        cursor,
        hasMore: false,
      })
    })

    test('knows no public token that nobody was given, and no item of another token', async () => {
      const { link } = open()
      const exchanged = link.exchange('invalid-public-token', 'owner')
      await expect(exchanged).rejects.toThrow(ProviderRefused)
      await expect(exchanged).rejects.toMatchObject({ about: 'public_token' })
      await expect(link.accounts('nobodys')).rejects.toThrow(ProviderRefused)
    })
  })
}
