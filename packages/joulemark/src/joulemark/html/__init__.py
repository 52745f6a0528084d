# One HTML page for an administrator: tables, figures, and nothing that a network would bring.
# SPDX-License-Identifier: Apache-2.0 OR MIT
