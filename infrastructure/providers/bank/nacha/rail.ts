import type { FileApp } from '../../../../application/banking/bank-files/file-app.ts'
import { orderMicroDeposits } from '../../../../application/banking/bank-files/micro-deposits.ts'
import { writeFiles } from '../../../../application/banking/bank-files/write-files.ts'
import type { BankRail, MicroDeposits, RailBatch } from '../../../../application/ports/bank-rail.ts'

/** Moves debits by files in the format of NACHA, which a bank fetches from a folder. */
export class NachaBankRail implements BankRail {
  readonly kind = 'nacha'
  readonly #app: FileApp

  constructor(app: FileApp) {
    this.#app = app
  }

  submit(batch: RailBatch): Promise<void> {
    return writeFiles(this.#app, batch)
  }

  sendMicroDeposits(deposits: MicroDeposits): Promise<void> {
    return orderMicroDeposits(this.#app, deposits)
  }
}
